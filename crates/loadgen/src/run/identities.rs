//! Distinct people as whom requests were sent.

use std::collections::HashSet;

use crate::user::Person;

/// A set of people; exact, and small: a bit for each user of the dataset.
#[derive(Debug, Default)]
pub(super) struct People {
    own: HashSet<u32>,
    populated: Vec<u64>,
    new: u64,
}

impl People {
    /// Nobody, with room for this many users of the dataset.
    pub(super) fn of(users: u64) -> Self {
        let words = usize::try_from(users.div_ceil(64)).unwrap_or(usize::MAX);
        Self { populated: vec![0; words], ..Self::default() }
    }

    pub(super) fn saw(&mut self, person: Person) {
        match person {
            Person::Own(index) => drop(self.own.insert(index)),
            Person::Populated(n) => {
                let word = usize::try_from(n / 64).ok().and_then(|word| self.populated.get_mut(word));
                if let Some(word) = word {
                    *word |= 1 << (n % 64);
                }
            }
            Person::New => self.new += 1,
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.own.extend(other.own);
        if self.populated.len() < other.populated.len() {
            self.populated.resize(other.populated.len(), 0);
        }
        for (into, from) in self.populated.iter_mut().zip(other.populated) {
            *into |= from;
        }
        self.new += other.new;
    }

    /// How many. Accounts that the load registered count only where there was nobody else: they would hide that all other
    /// requests came from one.
    pub(super) fn distinct(&self) -> u64 {
        let populated: u64 = self.populated.iter().map(|word| u64::from(word.count_ones())).sum();
        let known = self.own.len() as u64 + populated;
        if known == 0 { self.new } else { known }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_counted_once_wherever_they_were_seen() {
        let mut all = People::of(200);
        let mut other = People::of(200);
        for person in [Person::Own(1), Person::Populated(0), Person::Populated(199), Person::New] {
            all.saw(person);
            other.saw(person);
        }
        other.saw(Person::Own(2));
        other.saw(Person::Populated(64));
        all.merge(other);
        assert_eq!(all.distinct(), 2 + 3);
    }

    #[test]
    fn new_accounts_do_not_hide_that_there_was_one_person() {
        let mut people = People::default();
        people.saw(Person::New);
        people.saw(Person::New);
        assert_eq!(people.distinct(), 2);
        people.saw(Person::Own(0));
        assert_eq!(people.distinct(), 1);
    }
}
