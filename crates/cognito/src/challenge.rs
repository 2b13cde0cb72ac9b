//! What Cognito asks for instead of giving tokens.

/// A challenge. Sessions of challenges are dropped: there is no endpoint that could answer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Challenge {
    /// The problem's code.
    pub code: &'static str,
    /// The problem's sentence.
    pub detail: &'static str,
}

/// Every challenge of the API's `ChallengeNameType`, and what a person is told.
const KNOWN: &[(&str, Challenge)] = &[
    ("NEW_PASSWORD_REQUIRED", challenge("challenge_new_password_required", "A new password must be set first.")),
    ("MFA_SETUP", challenge("challenge_mfa_setup", "A second factor must be set up first.")),
    ("SMS_MFA", challenge("challenge_sms_mfa", "A code from a text message is needed.")),
    ("SOFTWARE_TOKEN_MFA", challenge("challenge_software_token_mfa", "A code of an authenticator app is needed.")),
    ("EMAIL_OTP", challenge("challenge_email_otp", "A code from an email is needed.")),
    ("SMS_OTP", challenge("challenge_sms_otp", "A code from a text message is needed.")),
    ("SELECT_MFA_TYPE", challenge("challenge_select_mfa_type", "A second factor must be chosen.")),
    ("SELECT_CHALLENGE", challenge("challenge_select_challenge", "A way to log in must be chosen.")),
    ("DEVICE_SRP_AUTH", challenge("challenge_device_srp_auth", "The device must be verified.")),
    ("DEVICE_PASSWORD_VERIFIER", challenge("challenge_device_password_verifier", "The device must be verified.")),
    ("PASSWORD_VERIFIER", challenge("challenge_password_verifier", "The password must be proven in another way.")),
    ("PASSWORD_SRP", challenge("challenge_password_srp", "The password must be proven in another way.")),
    ("PASSWORD", challenge("challenge_password", "The password must be proven in another way.")),
    ("WEB_AUTHN", challenge("challenge_web_authn", "A passkey is needed.")),
    (
        "CUSTOM_CHALLENGE",
        challenge("challenge_custom_challenge", "The identity provider asks for something of its own."),
    ),
    ("ADMIN_NO_SRP_AUTH", challenge("challenge_admin_no_srp_auth", "The identity provider asks for another login.")),
];

/// What is not in the table yet.
const UNKNOWN: Challenge =
    challenge("challenge_unknown", "The identity provider asks for something that this service does not know.");

const fn challenge(code: &'static str, detail: &'static str) -> Challenge {
    Challenge { code, detail }
}

impl Challenge {
    pub(crate) fn named(name: &str) -> Self {
        KNOWN.iter().find(|(known, _)| *known == name).map_or(UNKNOWN, |(_, challenge)| *challenge)
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_cognitoidentityprovider::types::ChallengeNameType;

    use super::*;

    #[test]
    fn every_challenge_of_the_api_has_a_code_of_its_own() {
        for name in ChallengeNameType::values() {
            let challenge = Challenge::named(name);
            assert_eq!(challenge.code, format!("challenge_{}", name.to_ascii_lowercase()));
        }
        assert_eq!(Challenge::named("SOMETHING_NEW").code, "challenge_unknown");
    }
}
