//! Sockets of the caller's, with a file and without.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use gitdoor::fence::Plan;

use crate::Place;

/// Says whether each can be connected to; one without a file begins with `@`.
const CONNECT: &str = "\
use Socket;
for my $name (@ARGV) {
    socket(my $socket, AF_UNIX, SOCK_STREAM, 0) or die;
    my $path = $name =~ s/^@/\\0/r;
    print connect($socket, pack_sockaddr_un($path)) ? \"open\\n\" : \"shut\\n\";
}
";

fn connect(place: &Place, sockets: &[String], plan: Plan) -> Vec<String> {
    let command = ["perl", "-e", CONNECT].into_iter().map(str::to_owned).chain(sockets.iter().cloned());
    let plan = Plan { command: command.map(Into::into).collect(), ..plan };
    place.inside(&plan).lines().map(str::to_owned).collect()
}

#[test]
fn no_socket_of_the_callers_answers_but_what_is_shown() {
    let place = Place::new();
    let names = ["home/.gnupg/S.gpg-agent", "run/user/1000/keyring", "agent/ssh", "bare/any", "state/run/gh.sock"];
    for name in names {
        std::fs::create_dir_all(place.path(name).parent().unwrap()).unwrap();
    }
    let listeners: Vec<_> = names.iter().map(|name| UnixListener::bind(place.path(name)).unwrap()).collect();
    let (run, agent) = (place.path("run/user/1000"), place.path("agent/ssh"));
    let place = place.variable("XDG_RUNTIME_DIR", run).variable("SSH_AUTH_SOCK", agent);
    let sockets = names.map(|name| place.path(name).display().to_string());
    let plan =
        Plan { show: vec![place.path("state/run/gh.sock")], hide: vec![place.path("state")], ..place.plan("") };
    assert_eq!(connect(&place, &sockets, plan), ["shut", "shut", "shut", "shut", "open"]);
    drop(listeners);
}

#[test]
fn an_abstract_socket_is_shut_or_told_of() {
    let place = Place::new();
    let name = format!("gitdoor-fence-{}", std::process::id());
    let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let outcome = connect(&place, &[format!("@{name}")], place.plan(""));
    let notes = place.fence().notes();
    if notes.is_empty() {
        assert_eq!(outcome, ["shut"]);
    } else {
        assert!(notes.iter().any(|note| note.contains("abstract")), "{notes:?}");
    }
}

#[test]
fn the_network_is_the_callers() {
    let place = Place::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let line = format!("use IO::Socket::INET; IO::Socket::INET->new('127.0.0.1:{port}') or die");
    place.inside(&Plan { command: ["perl", "-e", &line].map(Into::into).into(), ..place.plan("") });
}
