//! Settings that cannot be used are named before anything is sent.

use std::io::Write as _;

use tempfile::NamedTempFile;

use crate::github::stand_in::{Keys, config};
use crate::github::{Config, ConfigError, GitHub};

fn file(content: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(content.as_bytes()).unwrap();
    file
}

fn refused(change: impl FnOnce(&mut Config)) -> ConfigError {
    let key = file(&Keys::generate().pkcs8());
    let mut config = Config { app_key: key.path().to_owned(), ..config("https://api.github.com") };
    change(&mut config);
    GitHub::new(&config).unwrap_err()
}

#[test]
fn each_wrong_setting_names_its_flag() {
    let empty = file("");
    let no_certificate = file("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let endless = || "/dev/zero".into();
    let cases = [
        (refused(|c| c.app_key = "/nonexistent".into()), "--github-app-key"),
        (refused(|c| c.app_key = empty.path().into()), "--github-app-key"),
        (refused(|c| c.app_key = endless()), "--github-app-key"),
        (refused(|c| c.ca = Some("/nonexistent".into())), "--github-ca"),
        (refused(|c| c.ca = Some(empty.path().into())), "--github-ca"),
        (refused(|c| c.ca = Some(no_certificate.path().into())), "--github-ca"),
        (refused(|c| c.ca = Some(endless())), "--github-ca"),
        (refused(|c| c.api_url = "http://api.github.com".into()), "--github-api-url"),
        (refused(|c| c.api_url = "https://u:hush@api.github.com".into()), "--github-api-url"),
        (refused(|c| c.app_id = String::new()), "--github-app-id"),
        (refused(|c| c.app_id = "1\n2".into()), "--github-app-id"),
        (refused(|c| c.installation_id = 0), "--github-installation-id"),
    ];
    for (error, flag) in cases {
        assert_eq!(error.flag(), flag, "{error}");
        assert!(!format!("{error} {error:?}").contains("hush"));
    }
}

#[test]
fn named_authorities_need_none_of_the_system() {
    let key = file(&Keys::generate().pkcs1());
    let authority = rcgen::generate_simple_self_signed(["api.github.com".to_owned()]).unwrap().cert;
    let ca = file(&authority.pem());
    let config = Config {
        app_key: key.path().to_owned(),
        ca: Some(ca.path().to_owned()),
        ..config("https://api.github.com/")
    };
    let github = GitHub::new(&config).unwrap();
    assert!(!format!("{github:?}").contains("PRIVATE"));
}
