//! What each refusal of Cognito means for the call that it answers. `docs/cognito.md` has the same as a table.

use cognito::{CognitoError, Operation, Refusal, Trouble};
use service_kit::problem::FieldError;

use crate::identity::IdentityError;

/// Of `SignUp`, and of the confirmation that may follow it.
pub(super) fn of_registration(error: CognitoError) -> IdentityError {
    let Some(refusal) = error.refusal() else { return error.into() };
    match refusal {
        Refusal::UserExists => IdentityError::EmailTaken,
        // With fewer than six characters Cognito blames the parameter, not the password.
        Refusal::InvalidPassword
        | Refusal::PasswordUsedBefore
        | Refusal::PasswordParameter
        | Refusal::OtherParameter => against_policy("/password"),
        Refusal::EmailParameter => IdentityError::NotAccepted(FieldError::new(
            "/email",
            "email_not_accepted",
            "The identity provider does not take this address.",
        )),
        Refusal::SignUpNotPermitted | Refusal::ByTrigger | Refusal::NotAuthorized => IdentityError::Refused {
            code: "registration_refused",
            detail: "The identity provider takes no such registration.",
        },
        Refusal::Forbidden => forbidden(),
        Refusal::CodeNotDelivered => IdentityError::CodeNotDelivered,
        _ => error.into(),
    }
}

/// Of a login: who it is not is not told, nor whether there is such a person.
pub(super) fn of_login(error: CognitoError) -> IdentityError {
    let Some(refusal) = error.refusal() else { return error.into() };
    match refusal {
        Refusal::PasswordResetRequired => IdentityError::Refused {
            code: "password_reset_required",
            detail: "The password must be reset before the next login.",
        },
        Refusal::Forbidden => forbidden(),
        Refusal::LockedOut => {
            metrics::counter!("auth_logins_locked_out_total").increment(1);
            IdentityError::InvalidCredentials
        }
        // Among them UserNotConfirmed: Cognito says it before it has looked at the password, and would tell everybody who asks
        // that there is such an account.
        _ => IdentityError::InvalidCredentials,
    }
}

/// Of a confirmation in the middle of a login, whatever failed: that it was tried would tell that there is such an account.
pub(super) fn of_late_confirmation(error: CognitoError) -> IdentityError {
    tracing::warn!(%error, "an account that is not confirmed cannot be confirmed either");
    IdentityError::InvalidCredentials
}

/// Of tokens that could not be taken back later.
pub(super) fn unusable(operation: Operation) -> IdentityError {
    CognitoError::Unavailable { operation, trouble: Trouble::Unreadable }.into()
}

/// Of a refresh or a logout.
pub(super) fn of_session(error: CognitoError) -> IdentityError {
    match error.refusal() {
        None => error.into(),
        Some(Refusal::Forbidden) => forbidden(),
        Some(_) => IdentityError::InvalidRefreshToken,
    }
}

/// Of a change of password.
pub(super) fn of_password_change(error: CognitoError) -> IdentityError {
    let Some(refusal) = error.refusal() else { return error.into() };
    match refusal {
        Refusal::NotAuthorized | Refusal::LockedOut => IdentityError::CurrentPasswordWrong,
        Refusal::TokenNotAccepted
        | Refusal::UserDisabled
        | Refusal::UserNotFound
        | Refusal::UserNotConfirmed
        | Refusal::PasswordResetRequired => IdentityError::AccountUnavailable,
        Refusal::InvalidPassword | Refusal::PasswordParameter | Refusal::OtherParameter => {
            against_policy("/new_password")
        }
        Refusal::PasswordUsedBefore => IdentityError::NotAccepted(FieldError::new(
            "/new_password",
            "password_used_before",
            "The new password was used before.",
        )),
        Refusal::Forbidden => forbidden(),
        _ => error.into(),
    }
}

/// Of a confirmation: a wrong code, an old one, and one for nobody are one and the same.
pub(super) fn of_confirmation(error: CognitoError) -> IdentityError {
    match error.refusal() {
        None => error.into(),
        Some(Refusal::Forbidden) => forbidden(),
        // The address has been confirmed by another account meanwhile; only the right code leads here.
        Some(Refusal::UserExists) => IdentityError::EmailTaken,
        Some(_) => IdentityError::NotAccepted(FieldError::new(
            "/code",
            "code_not_accepted",
            "The code is wrong or too old; ask for another one.",
        )),
    }
}

/// Of another code: whether there was somebody to send it to is not told.
pub(super) fn of_resending(error: CognitoError) -> Result<(), IdentityError> {
    match error.refusal() {
        None => Err(error.into()),
        Some(Refusal::Forbidden) => Err(forbidden()),
        Some(Refusal::CodeNotDelivered) => Err(IdentityError::CodeNotDelivered),
        Some(_) => Ok(()),
    }
}

fn against_policy(pointer: &'static str) -> IdentityError {
    IdentityError::NotAccepted(FieldError::new(
        pointer,
        "password_policy",
        "The password does not keep the rules of the identity provider.",
    ))
}

fn forbidden() -> IdentityError {
    IdentityError::Refused {
        code: "identity_forbidden",
        detail: "The identity provider does not take requests from here.",
    }
}
