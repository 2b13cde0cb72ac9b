//! How much of an answer is read. The SDK collects a whole body before it looks at it, however long it is.

use std::error::Error;

use aws_sdk_cognitoidentityprovider as sdk;
use aws_smithy_types::body::SdkBody;
use http_body_util::{LengthLimitError, Limited};
use sdk::config::interceptors::BeforeDeserializationInterceptorContextMut;
use sdk::config::{ConfigBag, Intercept, RuntimeComponents};
use sdk::error::BoxError;

/// The most bytes of an answer. The largest are three tokens of some 2 KiB, and a user's attributes, of which a pool can have 50 of
/// its own with 2,048 characters each ("Quotas in Amazon Cognito").
pub(crate) const MAX_BYTES: usize = 256 * 1024;

/// Puts the bound around every answer's body.
#[derive(Debug)]
pub(crate) struct BoundedAnswers;

impl Intercept for BoundedAnswers {
    fn name(&self) -> &'static str {
        "BoundedAnswers"
    }

    fn modify_before_deserialization(
        &self,
        context: &mut BeforeDeserializationInterceptorContextMut<'_>,
        _components: &RuntimeComponents,
        _bag: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let body = context.response_mut().body_mut();
        let whole = std::mem::replace(body, SdkBody::taken());
        *body = SdkBody::from_body_1_x(Limited::new(whole, MAX_BYTES));
        Ok(())
    }
}

/// Whether the bound is why an answer could not be read.
pub(crate) fn is_the_reason(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<LengthLimitError>() {
            return true;
        }
        next = error.source();
    }
    false
}
