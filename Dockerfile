# One image for every part of Datum; the command says which: `task auth`, `migrate`, `balancer`, `object-store`, ….
# Nothing here depends on the processor: the base images' architecture decides.
ARG RUST=rust:1.95-bookworm
ARG RUNTIME=debian:bookworm-slim

# The workspace without its code: every crate's root is empty. COPY compares contents, so the dependencies below are compiled
# again when a manifest changes, and not when a source does.
FROM ${RUST} AS manifests
WORKDIR /source
COPY . .
RUN find crates services tests -path '*/src/main.rs' -o -path '*/src/lib.rs' -o -path '*/src/bin/*.rs' -o -name build.rs \
      -o -path '*/tests/*.rs' ! -path '*/src/*' -o -path '*/examples/*.rs' -o -path '*/benches/*.rs' >/roots \
 && mkdir /manifests && cp Cargo.toml Cargo.lock /manifests \
 && find crates services tests -name Cargo.toml -exec cp --parents {} /manifests ';' \
 && while read -r root; do mkdir -p "/manifests/${root%/*}" && echo 'fn main() {}' >"/manifests/$root"; done </roots

FROM ${RUST} AS build
WORKDIR /source
ENV CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0 CARGO_PROFILE_RELEASE_STRIP=symbols
COPY --from=manifests /manifests .
RUN cargo build --locked --release -p datum
COPY . .
ARG REVISION=
# Cargo goes by the files' times, and a checkout is older than the empty crates that were just compiled.
RUN find crates services -name '*.rs' -exec touch {} + \
 && if [ -n "$REVISION" ]; then export DATUM_REVISION="$REVISION"; fi \
 && cargo build --locked --release -p datum \
 && mkdir -p /result/bin /result/state/objects /result/state/keys && cp target/release/datum /result/bin

FROM ${RUNTIME}
ARG REVISION=
LABEL org.opencontainers.image.title="Datum" \
      org.opencontainers.image.description="A reference login system to put under load" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="${REVISION}"
# For the TLS of AWS; the slim base has none.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
# Authorities of a database's certificate: none in the repository, those of RDS where `infra/deploy image` has put them.
COPY infra/certs/ /etc/datum/certs/
# Volumes that are mounted here belong to the account below from the start.
COPY --from=build --chown=65532:65532 /result/state /var/lib/datum
COPY --from=build /result/bin/datum /usr/local/bin/datum
USER 65532:65532
WORKDIR /var/lib/datum
ENV PORT=8080 LOG_FORMAT=json
EXPOSE 8080
# Datum is process 1: it handles SIGTERM itself and starts no children in a container.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["datum", "healthcheck"]
ENTRYPOINT ["datum"]
CMD ["--help"]
