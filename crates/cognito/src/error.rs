//! What went wrong, in our words.
//!
//! An answer is read by its code; where one code means several things, by the words that Cognito is known to use. The words
//! themselves go no further.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use aws_sdk_cognitoidentityprovider::error::{ProvideErrorMetadata, SdkError};
use service_kit::problem::Problem;

use crate::answer_size;
use crate::challenge::Challenge;
use crate::operation::Operation;

/// After which a call that was throttled by rate may be made again: the quotas count by the second.
const AFTER_RATE: Duration = Duration::from_secs(1);

/// After which a user with too many attempts may try again. Cognito does not say; its pauses begin with seconds and grow to
/// minutes ("Lockout behavior for failed sign-in attempts").
const AFTER_ATTEMPTS: Duration = Duration::from_mins(1);

/// After which a provider that does not answer may be asked again.
const AFTER_TROUBLE: Duration = Duration::from_secs(5);

/// Why a call gave nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CognitoError {
    /// Cognito understood, and said no.
    #[error("{}: refused: {refusal:?}", operation.name())]
    Refused {
        /// Which call.
        operation: Operation,
        /// Why.
        refusal: Refusal,
    },
    /// Cognito wants something else first.
    #[error("{}: {}", operation.name(), challenge.code)]
    Challenged {
        /// Which call.
        operation: Operation,
        /// What.
        challenge: Challenge,
    },
    /// Too many calls, by whoever counts.
    #[error("{}: throttled by {}", operation.name(), by.label())]
    Throttled {
        /// Which call.
        operation: Operation,
        /// Who counts.
        by: ThrottledBy,
        /// After this time it may be made again.
        retry_after: Duration,
    },
    /// No connection became free in time.
    #[error("{}: every connection is in use", operation.name())]
    Busy {
        /// Which call.
        operation: Operation,
    },
    /// No usable answer.
    #[error("{}: {trouble}", operation.name())]
    Unavailable {
        /// Which call.
        operation: Operation,
        /// Why.
        trouble: Trouble,
    },
}

/// Who counted too many calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThrottledBy {
    /// Cognito, by its request rates.
    Provider,
    /// Cognito, by the attempts of one user.
    Attempts,
    /// This task, by `COGNITO_LIMIT_*`.
    Limit,
    /// This task, by `COGNITO_LIMIT_PER_USER`.
    UserLimit,
}

/// What Cognito says no to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// `NotAuthorizedException`: user and password do not fit.
    NotAuthorized,
    /// `NotAuthorizedException` after too many of those.
    LockedOut,
    /// `NotAuthorizedException`: the user is disabled.
    UserDisabled,
    /// A token that is revoked, expired, unknown, or of another client or kind.
    TokenNotAccepted,
    /// `UserNotFoundException`.
    UserNotFound,
    /// `UserNotConfirmedException`. Cognito says it before it looks at the password.
    UserNotConfirmed,
    /// The user is confirmed already.
    AlreadyConfirmed,
    /// `PasswordResetRequiredException`.
    PasswordResetRequired,
    /// `UsernameExistsException`, `AliasExistsException`.
    UserExists,
    /// `InvalidPasswordException`: against the pool's policy.
    InvalidPassword,
    /// `PasswordHistoryPolicyViolationException`.
    PasswordUsedBefore,
    /// `InvalidParameterException` about the password.
    PasswordParameter,
    /// `InvalidParameterException` about email or user name.
    EmailParameter,
    /// `InvalidParameterException` about something else.
    OtherParameter,
    /// `CodeMismatchException`, `ExpiredCodeException`.
    CodeNotAccepted,
    /// `UserLambdaValidationException`: a trigger of the pool's owner refused.
    ByTrigger,
    /// `NotAuthorizedException`: the pool takes no registrations.
    SignUpNotPermitted,
    /// `ForbiddenException`: a web ACL refused.
    Forbidden,
    /// `CodeDeliveryFailureException`: the account is there, its code could not be sent.
    CodeNotDelivered,
}

/// Why there is no usable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Refused, no route, unknown host, TLS failure, broken.
    NoConnection,
    /// Nothing in time.
    Timeout,
    /// A 5xx.
    Failing(u16),
    /// An answer that cannot be read, or that lacks what it must have.
    Unreadable,
    /// An answer longer than any of Cognito's; the rest was not read.
    TooLarge,
    /// Pool, client, credentials or a trigger are not set up for this call; only an operator can help.
    Misconfigured,
    /// A code that nobody has told us the meaning of.
    Unexpected(u16),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoConnection => write!(f, "no connection"),
            Self::Timeout => write!(f, "timed out"),
            Self::Failing(status) => write!(f, "the provider fails with status {status}"),
            Self::Unreadable => write!(f, "the answer could not be read"),
            Self::TooLarge => write!(f, "the answer is too large"),
            Self::Misconfigured => write!(f, "pool, client, credentials or trigger are not set up for this call"),
            Self::Unexpected(status) => write!(f, "an unknown error with status {status}"),
        }
    }
}

impl CognitoError {
    /// Which call it was.
    #[must_use]
    pub fn operation(&self) -> Operation {
        match self {
            Self::Refused { operation, .. }
            | Self::Challenged { operation, .. }
            | Self::Throttled { operation, .. }
            | Self::Busy { operation }
            | Self::Unavailable { operation, .. } => *operation,
        }
    }

    /// What Cognito said no to, if that is it.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Refused { refusal, .. } => Some(*refusal),
            _ => None,
        }
    }

    /// One word for metrics; the set of words is bounded.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Refused { .. } => "refused",
            Self::Challenged { .. } => "challenged",
            Self::Throttled { .. } => "throttled",
            Self::Busy { .. } => "busy",
            Self::Unavailable { trouble, .. } => match trouble {
                Trouble::NoConnection => "no_connection",
                Trouble::Timeout => "timeout",
                Trouble::Failing(_) => "failing",
                Trouble::Unreadable => "unreadable",
                Trouble::TooLarge => "too_large",
                Trouble::Misconfigured => "misconfigured",
                Trouble::Unexpected(_) => "unexpected",
            },
        }
    }

    /// Whether another attempt may fare better.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unavailable {
                trouble: Trouble::NoConnection | Trouble::Timeout | Trouble::Failing(_) | Trouble::Unreadable,
                ..
            }
        )
    }

    /// Whether the provider did its work.
    pub(crate) fn is_an_answer(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::Challenged { .. })
    }

    /// The meaning of what the SDK gave.
    pub(crate) fn of<E>(operation: Operation, error: &SdkError<E>) -> Self
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        let trouble = match error {
            SdkError::ServiceError(service) => {
                let meta = service.err().meta();
                let status = service.raw().status().as_u16();
                return Self::read(operation, status, meta.code().unwrap_or(""), meta.message().unwrap_or(""));
            }
            SdkError::TimeoutError(_) => Trouble::Timeout,
            SdkError::DispatchFailure(failure) if failure.is_timeout() => Trouble::Timeout,
            SdkError::DispatchFailure(_) => Trouble::NoConnection,
            SdkError::ResponseError(_) if answer_size::is_the_reason(error) => Trouble::TooLarge,
            // No JSON: a proxy's page, perhaps. Its status says enough.
            SdkError::ResponseError(answer) => match answer.raw().status().as_u16() {
                429 | 500.. => return Self::read(operation, answer.raw().status().as_u16(), "", ""),
                _ => Trouble::Unreadable,
            },
            // Nothing was sent: no credentials, or nothing that could be signed.
            _ => Trouble::Misconfigured,
        };
        Self::Unavailable { operation, trouble }
    }

    fn read(operation: Operation, status: u16, code: &str, message: &str) -> Self {
        let says = |words: &str| contains_ignoring_case(message, words);
        let refused = |refusal| Self::Refused { operation, refusal };
        let unavailable = |trouble| Self::Unavailable { operation, trouble };
        let throttled = |by, retry_after| Self::Throttled { operation, by, retry_after };
        match code {
            "TooManyRequestsException"
            | "ThrottlingException"
            | "Throttling"
            | "ThrottledException"
            | "RequestLimitExceeded"
            | "SlowDown" => throttled(ThrottledBy::Provider, AFTER_RATE),
            "LimitExceededException" | "TooManyFailedAttemptsException" => {
                throttled(ThrottledBy::Attempts, AFTER_ATTEMPTS)
            }
            // Whatever it calls itself: a server that fails has judged nobody.
            _ if status >= 500 => unavailable(Trouble::Failing(status)),
            "NotAuthorizedException" if says("secret hash") || says("secrethash") => match operation {
                // Here the hashed name comes from the client, who may have put another one there.
                Operation::Refresh => refused(Refusal::TokenNotAccepted),
                _ => unavailable(Trouble::Misconfigured),
            },
            "NotAuthorizedException" if says("attempts exceeded") => refused(Refusal::LockedOut),
            "NotAuthorizedException" if says("disabled") => refused(Refusal::UserDisabled),
            "NotAuthorizedException" if says("not permitted") => refused(Refusal::SignUpNotPermitted),
            "NotAuthorizedException" if says("current status") => refused(Refusal::AlreadyConfirmed),
            "NotAuthorizedException" if says("token") => refused(Refusal::TokenNotAccepted),
            "NotAuthorizedException" => refused(Refusal::NotAuthorized),
            "UnauthorizedException" | "UnsupportedTokenTypeException" | "RefreshTokenReuseException" => {
                refused(Refusal::TokenNotAccepted)
            }
            "UserNotFoundException" => refused(Refusal::UserNotFound),
            "UserNotConfirmedException" => refused(Refusal::UserNotConfirmed),
            "PasswordResetRequiredException" => refused(Refusal::PasswordResetRequired),
            "UsernameExistsException" | "AliasExistsException" => refused(Refusal::UserExists),
            "InvalidPasswordException" => refused(Refusal::InvalidPassword),
            "PasswordHistoryPolicyViolationException" => refused(Refusal::PasswordUsedBefore),
            "CodeMismatchException" | "ExpiredCodeException" => refused(Refusal::CodeNotAccepted),
            "UserLambdaValidationException" => refused(Refusal::ByTrigger),
            "ForbiddenException" => refused(Refusal::Forbidden),
            "CodeDeliveryFailureException" => refused(Refusal::CodeNotDelivered),
            // "USER_PASSWORD_AUTH flow not enabled for this client", "Username cannot be of email format, since user pool is
            // configured for email alias."
            "InvalidParameterException"
                if says("not enabled") || says("email alias") || says("refresh token rotation") =>
            {
                unavailable(Trouble::Misconfigured)
            }
            "InvalidParameterException" if says("already confirmed") => refused(Refusal::AlreadyConfirmed),
            "InvalidParameterException" if says("token") => refused(Refusal::TokenNotAccepted),
            "InvalidParameterException" if says("password") => refused(Refusal::PasswordParameter),
            "InvalidParameterException" if says("email") || says("username") => refused(Refusal::EmailParameter),
            "InvalidParameterException" => refused(Refusal::OtherParameter),
            "ResourceNotFoundException"
            | "InvalidUserPoolConfigurationException"
            | "InvalidEmailRoleAccessPolicyException"
            | "InvalidSmsRoleAccessPolicyException"
            | "InvalidSmsRoleTrustRelationshipException"
            | "InvalidLambdaResponseException"
            | "UnexpectedLambdaException"
            | "OperationNotEnabledException"
            | "UnsupportedOperationException"
            | "FeatureUnavailableInTierException"
            | "AccessDeniedException"
            | "UnrecognizedClientException"
            | "InvalidSignatureException"
            | "ExpiredTokenException"
            | "UnknownOperationException" => unavailable(Trouble::Misconfigured),
            "InternalErrorException" => unavailable(Trouble::Failing(status)),
            _ if status == 429 => throttled(ThrottledBy::Provider, AFTER_RATE),
            _ => unavailable(Trouble::Unexpected(status)),
        }
    }
}

fn contains_ignoring_case(text: &str, words: &str) -> bool {
    text.as_bytes().windows(words.len()).any(|window| window.eq_ignore_ascii_case(words.as_bytes()))
}

/// What a client is told where the service has nothing of its own to say about it.
impl From<CognitoError> for Problem {
    fn from(error: CognitoError) -> Self {
        let problem = match error {
            CognitoError::Challenged { challenge, .. } => Self::forbidden(challenge.code, challenge.detail),
            CognitoError::Throttled { by: ThrottledBy::Attempts, retry_after, .. } => Self::too_many_requests(
                "too_many_attempts",
                "Too many attempts for this account; wait before the next.",
                retry_after,
            ),
            CognitoError::Throttled { retry_after, .. } => Self::too_many_requests(
                "identity_throttled",
                "The identity provider takes no more requests at the moment.",
                retry_after,
            ),
            CognitoError::Busy { .. } => Self::unavailable(
                "identity_busy",
                "As many requests as may be are at the identity provider; try again in a moment.",
                AFTER_RATE,
            ),
            // A refusal that the service did not expect from this call is trouble, too.
            CognitoError::Unavailable { .. } | CognitoError::Refused { .. } => Self::unavailable(
                "identity_unavailable",
                "The identity provider does not answer as it should.",
                AFTER_TROUBLE,
            ),
        };
        problem.with_source(error)
    }
}
