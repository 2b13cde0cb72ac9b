//! The calls that the double knows, and the quota that each counts against.

use std::fmt;
use std::str::FromStr;

/// A call of the user pools API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Makes an account.
    SignUp,
    /// Confirms it by code.
    ConfirmSignUp,
    /// Sends another code.
    ResendConfirmationCode,
    /// Confirms it without a code.
    AdminConfirmSignUp,
    /// Makes an account whose password must be changed at the first login.
    AdminCreateUser,
    /// Sets a password.
    AdminSetUserPassword,
    /// A login, or a renewal of tokens.
    InitiateAuth,
    /// The answer to a challenge.
    RespondToAuthChallenge,
    /// Ends the session of a refresh token.
    RevokeToken,
    /// Ends all sessions of a user.
    GlobalSignOut,
    /// Replaces the caller's password.
    ChangePassword,
    /// The caller's attributes.
    GetUser,
}

impl Operation {
    /// All of them, each at the place of its number.
    pub const ALL: [Self; 12] = [
        Self::SignUp,
        Self::ConfirmSignUp,
        Self::ResendConfirmationCode,
        Self::AdminConfirmSignUp,
        Self::AdminCreateUser,
        Self::AdminSetUserPassword,
        Self::InitiateAuth,
        Self::RespondToAuthChallenge,
        Self::RevokeToken,
        Self::GlobalSignOut,
        Self::ChangePassword,
        Self::GetUser,
    ];

    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SignUp => "SignUp",
            Self::ConfirmSignUp => "ConfirmSignUp",
            Self::ResendConfirmationCode => "ResendConfirmationCode",
            Self::AdminConfirmSignUp => "AdminConfirmSignUp",
            Self::AdminCreateUser => "AdminCreateUser",
            Self::AdminSetUserPassword => "AdminSetUserPassword",
            Self::InitiateAuth => "InitiateAuth",
            Self::RespondToAuthChallenge => "RespondToAuthChallenge",
            Self::RevokeToken => "RevokeToken",
            Self::GlobalSignOut => "GlobalSignOut",
            Self::ChangePassword => "ChangePassword",
            Self::GetUser => "GetUser",
        }
    }

    /// The category whose quota it counts against. AWS's page "Quotas in Amazon Cognito" names the members of
    /// `UserCreation` and `UserAuthentication` in its text; the others are placed by what the page says their category is for.
    #[must_use]
    pub const fn category(self) -> Category {
        match self {
            Self::SignUp | Self::ConfirmSignUp | Self::AdminConfirmSignUp | Self::AdminCreateUser => {
                Category::UserCreation
            }
            Self::InitiateAuth | Self::RespondToAuthChallenge => Category::UserAuthentication,
            Self::ChangePassword => Category::UserAccountRecovery,
            Self::ResendConfirmationCode | Self::AdminSetUserPassword => Category::UserUpdate,
            Self::RevokeToken | Self::GlobalSignOut => Category::UserToken,
            Self::GetUser => Category::UserRead,
        }
    }

    /// Whether AWS demands a signed request (Signature Version 4). The others are called without credentials.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::AdminConfirmSignUp | Self::AdminCreateUser | Self::AdminSetUserPassword)
    }

    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Operation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|operation| operation.name() == text);
        known.ok_or_else(|| format!("`{text}` is no call that is known here"))
    }
}

/// What quotas are set for: calls of a kind share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// Logins and renewals.
    UserAuthentication,
    /// New accounts and their confirmation.
    UserCreation,
    /// Passwords.
    UserAccountRecovery,
    /// Attributes of the caller.
    UserRead,
    /// Changes of accounts.
    UserUpdate,
    /// Revocation.
    UserToken,
}

impl Category {
    /// All of them, each at the place of its number.
    pub const ALL: [Self; 6] = [
        Self::UserAuthentication,
        Self::UserCreation,
        Self::UserAccountRecovery,
        Self::UserRead,
        Self::UserUpdate,
        Self::UserToken,
    ];

    /// Its name in Service Quotas.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UserAuthentication => "UserAuthentication",
            Self::UserCreation => "UserCreation",
            Self::UserAccountRecovery => "UserAccountRecovery",
            Self::UserRead => "UserRead",
            Self::UserUpdate => "UserUpdate",
            Self::UserToken => "UserToken",
        }
    }

    /// Requests a second that an account and region have where nobody asked for more ("Quotas in Amazon Cognito").
    #[must_use]
    pub const fn default_per_second(self) -> f64 {
        match self {
            Self::UserAuthentication | Self::UserRead | Self::UserToken => 120.0,
            Self::UserCreation => 50.0,
            Self::UserAccountRecovery => 30.0,
            Self::UserUpdate => 25.0,
        }
    }

    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

impl FromStr for Category {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|category| category.name() == text);
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("`{text}` is no category of quotas ({names})")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_the_place_of_its_number_and_its_name_back() {
        for (index, operation) in Operation::ALL.into_iter().enumerate() {
            assert_eq!(operation.index(), index);
            assert_eq!(operation.name().parse(), Ok(operation));
        }
        for (index, category) in Category::ALL.into_iter().enumerate() {
            assert_eq!(category.index(), index);
            assert_eq!(category.name().parse(), Ok(category));
        }
        assert!("DeleteUser".parse::<Operation>().is_err() && "User".parse::<Category>().is_err());
    }
}
