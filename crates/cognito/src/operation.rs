//! The calls, and what Cognito counts them under.

/// A call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `SignUp`.
    SignUp,
    /// `ConfirmSignUp`.
    ConfirmSignUp,
    /// `ResendConfirmationCode`.
    ResendConfirmationCode,
    /// `AdminConfirmSignUp`.
    AdminConfirmSignUp,
    /// `InitiateAuth` with `USER_PASSWORD_AUTH`.
    LogIn,
    /// `InitiateAuth` with `REFRESH_TOKEN_AUTH`, or `GetTokensFromRefreshToken`.
    Refresh,
    /// `RevokeToken`.
    RevokeToken,
    /// `ChangePassword`.
    ChangePassword,
    /// `GlobalSignOut`.
    GlobalSignOut,
    /// `GetUser`.
    GetUser,
}

/// What the quotas count by, all of `User…` ("Quotas in Amazon Cognito", API request rate quotas).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Category {
    Authentication,
    Creation,
    Read,
    Token,
    /// With a small quota of its own; limited here by user only.
    AccountRecovery,
}

impl Operation {
    /// The name in logs and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SignUp => "sign_up",
            Self::ConfirmSignUp => "confirm_sign_up",
            Self::ResendConfirmationCode => "resend_confirmation_code",
            Self::AdminConfirmSignUp => "admin_confirm_sign_up",
            Self::LogIn => "log_in",
            Self::Refresh => "refresh",
            Self::RevokeToken => "revoke_token",
            Self::ChangePassword => "change_password",
            Self::GlobalSignOut => "global_sign_out",
            Self::GetUser => "get_user",
        }
    }

    pub(crate) fn category(self) -> Category {
        match self {
            Self::SignUp | Self::ConfirmSignUp | Self::ResendConfirmationCode | Self::AdminConfirmSignUp => {
                Category::Creation
            }
            Self::LogIn => Category::Authentication,
            Self::Refresh | Self::RevokeToken | Self::GlobalSignOut => Category::Token,
            Self::ChangePassword => Category::AccountRecovery,
            Self::GetUser => Category::Read,
        }
    }

    /// Whether a second attempt is harmless when the first may have been carried out: a second `SignUp` would take the account for
    /// somebody else's, a second `ChangePassword` the old password for wrong, a second refresh would present a token that a
    /// rotating pool has replaced, and a second message is one too many.
    pub(crate) fn is_repeatable(self) -> bool {
        match self {
            Self::AdminConfirmSignUp | Self::LogIn | Self::RevokeToken | Self::GlobalSignOut | Self::GetUser => true,
            Self::SignUp
            | Self::ConfirmSignUp
            | Self::ResendConfirmationCode
            | Self::Refresh
            | Self::ChangePassword => false,
        }
    }
}
