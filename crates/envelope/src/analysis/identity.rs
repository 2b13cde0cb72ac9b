//! Whether a run was sent by as many persons as it says.

/// What tells that a driver has noticed; also how a reader finds that it has said so.
pub(crate) const AS_ONE_PERSON: &str = "virtual users sent as one person";

/// Why a run in which one identity served several virtual users says nothing: the sentence that a driver voids it with. `None`
/// for one virtual user, who is one person.
#[must_use]
pub fn single_identity(identities: u64, users: u32) -> Option<String> {
    let is_shared = identities == 1 && users > 1;
    is_shared.then(|| {
        format!("All {users} {AS_ONE_PERSON}: the target answered from the caches, locks and throttle of one account.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_person_is_too_few_for_several_users_and_enough_for_one() {
        assert!(single_identity(1, 5).expect("void").starts_with("All 5 virtual users sent as one person"));
        assert_eq!(single_identity(1, 1), None);
        assert_eq!(single_identity(2, 5), None);
        assert_eq!(single_identity(0, 5), None, "nobody sent anything");
    }
}
