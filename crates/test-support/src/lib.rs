//! Development only: what the tests of all three services need. A database per test, an object store, a token issuer, the
//! service under test as production serves it, and typed callers. It knows no service: they depend on it.

mod app;
mod background;
mod caller;
mod cognito_stub;
mod database;
mod emulator;
mod eventually;
mod folders;
mod issuer;
mod object_store;
mod openapi;
mod postgres;
mod raw;
mod reply;
mod server;

pub use app::{App, every_reply_has_request_id_and_server_timing};
pub use caller::{Caller, TestUser};
pub use cognito_stub::{CognitoAnswer, CognitoCall, CognitoStub};
pub use database::{TestDatabase, test_passwords};
pub use emulator::{Emulator, TestEmulator};
pub use eventually::eventually;
pub use issuer::{JwksAnswer, JwksStub, TestIssuer, TestKey, TestToken};
pub use object_store::TestObjectStore;
pub use openapi::{assert_errors_are_described_as_problems, assert_openapi_is_committed};
pub use postgres::TestPostgres;
pub use raw::exchange_raw;
pub use reply::Reply;
pub use server::TestServer;
pub use stack::object_store::{Fault, Mischief};
