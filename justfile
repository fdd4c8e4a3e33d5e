# `just` lists what there is; `just check` is what continuous integration runs.

[private]
default:
    @just --list --unsorted

# Everything: format, sources, lints, documents, tests, demo; or only the steps that are named
check *steps:
    ./tests/run {{ steps }}

# The tests, or those whose names match
test *filter:
    cargo nextest run --workspace {{ filter }}

# Both planes and a stand-in GitHub on loopback, command by command
demo *args:
    cargo demo {{ args }}

# A bounded load of real clients for a door: `just load --help`
load *args:
    cargo run --release --package gitdoor-tests --bin load -- {{ args }}

# Format the tree
fmt:
    cargo fmt --all

# The lints, as errors
lint:
    ./tests/run lints

# The crates' documents, in a browser
docs:
    cargo doc --no-deps --workspace --document-private-items --open

# Licences, sources and bans of the dependencies
deny:
    cargo deny --locked check bans licenses sources
