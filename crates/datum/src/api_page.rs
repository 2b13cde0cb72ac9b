//! One OpenAPI document of the whole API, and a page to try it, served by the load balancer without internet.

use axum::Router;
use stack::Service;
use utoipa::openapi::{Info, OpenApi, Paths};
use utoipa_swagger_ui::{Config, SwaggerUi};

/// One service's document.
#[must_use]
pub(crate) fn openapi_of(service: Service) -> OpenApi {
    match service {
        Service::Auth => auth::openapi(),
        Service::Actor => actor::openapi(),
        Service::Document => document::openapi(),
    }
}

/// The documents of all services as one, as a client behind the load balancer sees the API.
#[must_use]
pub fn merged_openapi() -> OpenApi {
    let mut info = Info::new("Datum", env!("CARGO_PKG_VERSION"));
    info.description = Some(
        "Register, log in, see who you are, keep documents. Every error is an RFC 9457 problem; every answer carries \
         `x-request-id`, and every answer of a service `Server-Timing`."
            .to_owned(),
    );
    Service::ALL
        .into_iter()
        .fold(OpenApi::new(info, Paths::new()), |merged, service| merged.merge_from(openapi_of(service)))
}

/// `/docs` and `/openapi.json`, to be answered by the balancer itself.
pub fn router() -> Router {
    let config = Config::from("/openapi.json")
        // Otherwise the page asks validator.swagger.io about a document that only this machine can read.
        .validator_url("none")
        .try_it_out_enabled(true)
        .persist_authorization(true)
        .display_request_duration(true);
    SwaggerUi::new("/docs").url("/openapi.json", merged_openapi()).config(config).into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    fn json(document: &OpenApi) -> Value {
        serde_json::to_value(document).expect("a document is JSON")
    }

    fn entries<'a>(document: &'a Value, pointer: &str) -> Vec<(&'a String, &'a Value)> {
        document.pointer(pointer).and_then(Value::as_object).map(|map| map.iter().collect()).unwrap_or_default()
    }

    #[test]
    fn every_path_of_every_service_is_in_the_merged_document() {
        let merged = json(&merged_openapi());
        let mut count = 0;
        for service in Service::ALL {
            let document = json(&openapi_of(service));
            for (path, item) in entries(&document, "/paths") {
                assert_eq!(merged["paths"].get(path), Some(item), "{service} {path}");
                count += 1;
            }
        }
        assert_eq!(entries(&merged, "/paths").len(), count, "two services describe the same path");
        for path in ["/v1/auth/register", "/v1/auth/login", "/v1/actors/me", "/v1/documents", "/.well-known/jwks.json"]
        {
            assert!(merged["paths"].get(path).is_some(), "{path} is missing");
        }
    }

    /// utoipa keeps the first of two components with one name and drops the other without a word.
    #[test]
    fn no_two_services_give_one_name_to_two_things() {
        let mut seen: BTreeMap<String, (Service, Value)> = BTreeMap::new();
        for service in Service::ALL {
            let document = json(&openapi_of(service));
            for kind in ["schemas", "responses", "securitySchemes", "parameters"] {
                for (name, value) in entries(&document, &format!("/components/{kind}")) {
                    let key = format!("{kind}/{name}");
                    if let Some((other, theirs)) = seen.get(&key) {
                        assert_eq!(value, theirs, "{service} and {other} disagree on {key}");
                    }
                    seen.insert(key, (service, value.clone()));
                }
            }
        }
    }

    #[test]
    fn operation_ids_are_unique_as_code_generators_need_them() {
        let merged = json(&merged_openapi());
        let mut ids = Vec::new();
        for (path, item) in entries(&merged, "/paths") {
            for (method, operation) in item.as_object().expect("an item") {
                if let Some(id) = operation.get("operationId") {
                    ids.push((id.to_string(), format!("{method} {path}")));
                }
            }
        }
        ids.sort();
        for pair in ids.windows(2) {
            assert_ne!(pair[0].0, pair[1].0, "{} and {}", pair[0].1, pair[1].1);
        }
    }

    #[test]
    fn every_reference_in_the_merged_document_leads_somewhere() {
        fn walk(value: &Value, document: &Value) {
            match value {
                Value::Object(map) => {
                    if let Some(Value::String(reference)) = map.get("$ref") {
                        let pointer = reference.strip_prefix('#').expect("a reference into the document");
                        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
                    }
                    map.values().for_each(|value| walk(value, document));
                }
                Value::Array(values) => values.iter().for_each(|value| walk(value, document)),
                _ => {}
            }
        }
        let merged = json(&merged_openapi());
        walk(&merged, &merged);
    }
}
