//! Opening the file: what is no store of this program, or a broken one, is refused and left as it is.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::store::migration::{self, Migration};

/// In the file's header: marks it as a store of this program ("gtdr").
const APPLICATION_ID: i32 = 0x6774_6472;
/// The schema's version is the number of the last that was applied.
const MIGRATIONS: &[Migration] = &[
    Migration { number: 1, sql: include_str!("../../../migrations/sqlite/0001_runs_and_pushes.sql") },
    Migration { number: 2, sql: include_str!("../../../migrations/sqlite/0002_adopted_at.sql") },
    Migration { number: 3, sql: include_str!("../../../migrations/sqlite/0003_control.sql") },
    Migration { number: 4, sql: include_str!("../../../migrations/sqlite/0004_mirror_tokens.sql") },
];
/// How long a statement waits for a lock that an inspecting process holds.
const BUSY: Duration = Duration::from_secs(2);
/// The first bytes of every database.
const HEADER: &[u8] = b"SQLite format 3\0";
/// The first four bytes of a write-ahead log, but for the lowest bit.
const WAL_MAGIC: u32 = 0x377f_0682;

/// What an open store is made of.
pub(super) struct Files {
    /// Held as long as the store is open.
    pub(super) lock: File,
    /// The connection that writes.
    pub(super) writer: Connection,
    /// The connection that looks up.
    pub(super) reader: Connection,
    /// The connection that lists.
    pub(super) lists: Connection,
}

/// Why a file was not opened as a store. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No such folder.
    #[error("{}: its folder does not exist", path.display())]
    Folder {
        /// The store.
        path: PathBuf,
    },
    /// Not a regular file, or not one that this process may read and write.
    #[error("{}: cannot be opened", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process has it.
    #[error("{}: in use by another process", path.display())]
    InUse {
        /// The store.
        path: PathBuf,
    },
    /// Something else.
    #[error("{}: not a database", path.display())]
    NoDatabase {
        /// The file.
        path: PathBuf,
    },
    /// `SQLite` cannot read it.
    #[error("{}: a broken database", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What `SQLite` says.
        source: rusqlite::Error,
    },
    /// `SQLite` finds it inconsistent.
    #[error("{}: the database is corrupt", path.display())]
    Corrupt {
        /// The store.
        path: PathBuf,
    },
    /// Its write-ahead log is none, so that what was committed last would be lost.
    #[error("{}: the write-ahead log cannot be read", path.display())]
    Log {
        /// The log.
        path: PathBuf,
    },
    /// A database of another program.
    #[error("{}: a database of another program", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Written by a later version.
    #[error("{}: its schema {found} is newer than this program's {known}", path.display())]
    Newer {
        /// The store.
        path: PathBuf,
        /// The version in the file.
        found: i64,
        /// The version of this program.
        known: i64,
    },
    /// No thread to write with.
    #[error("the store's thread cannot be started")]
    Thread {
        /// Why.
        source: io::Error,
    },
}

/// Opens the store at a path, or makes a new one.
pub(super) fn open(path: &Path) -> Result<Files, OpenError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !parent.is_dir() {
        return Err(OpenError::Folder { path: path.to_owned() });
    }
    check_header(path)?;
    let lock = lock(path)?;
    create(path)?;
    check_log(path)?;
    let writer = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    check(&writer, path)?;
    prepare(&writer, path)?;
    migrate(&writer, path)?;
    let (reader, lists) = (reading(path)?, reading(path)?);
    Ok(Files { lock, writer, reader, lists })
}

fn reading(path: &Path) -> Result<Connection, OpenError> {
    let reader = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    reader.pragma_update(None, "query_only", true).map_err(broken(path))?;
    Ok(reader)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// What is no database is refused before anything is put beside it.
fn check_header(path: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::File { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(failed(source)),
    };
    let mut header = Vec::with_capacity(HEADER.len());
    file.take(HEADER.len() as u64).read_to_end(&mut header).map_err(failed)?;
    if header.is_empty() || header == HEADER {
        Ok(())
    } else {
        Err(OpenError::NoDatabase { path: path.to_owned() })
    }
}

/// Two processes that write one file would each answer from what the other has not told it.
fn lock(path: &Path) -> Result<File, OpenError> {
    // Beside the database, not itself: closing any handle of that would end SQLite's own locks on it.
    let beside = beside(path, "-lock");
    let failed = |source| OpenError::File { path: beside.clone(), source };
    let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&beside);
    let lock = lock.map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// Makes the file, for its owner alone, if there is none; `SQLite` gives its log the same mode.
fn create(path: &Path) -> Result<(), OpenError> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    file.map(drop).map_err(|source| OpenError::File { path: path.to_owned(), source })
}

/// `SQLite` takes a log with a broken header for an empty one, and drops what was committed to it.
fn check_log(path: &Path) -> Result<(), OpenError> {
    let path = beside(path, "-wal");
    let mut log = match File::open(&path) {
        Ok(log) => log,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(OpenError::File { path, source }),
    };
    let mut header = [0_u8; 4];
    match log.read_exact(&mut header) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
        Err(source) => Err(OpenError::File { path, source }),
        // All zeros: the machine stopped before the first commit was synced, so there is none to lose.
        Ok(()) if header == [0; 4] || u32::from_be_bytes(header) & !1 == WAL_MAGIC => Ok(()),
        Ok(()) => Err(OpenError::Log { path }),
    }
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, OpenError> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    let connection = connection.map_err(broken(path))?;
    connection.busy_timeout(BUSY).map_err(broken(path))?;
    connection.pragma_update(None, "foreign_keys", true).map_err(broken(path))?;
    connection.pragma_update(None, "mmap_size", 256 << 20).map_err(broken(path))?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn broken(path: &Path) -> impl Fn(rusqlite::Error) -> OpenError {
    move |source| OpenError::Broken { path: path.to_owned(), source }
}

/// Reads the whole file once: a corrupt page is found now and not by the run that needs it.
fn check(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let verdict: String =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(broken(path))?;
    if verdict == "ok" { Ok(()) } else { Err(OpenError::Corrupt { path: path.to_owned() }) }
}

fn prepare(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let application: i32 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(broken(path))?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(broken(path))?;
    if application != APPLICATION_ID && (application != 0 || tables > 0) {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    let journal: String =
        connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0)).map_err(broken(path))?;
    if !journal.eq_ignore_ascii_case("wal") {
        return Err(OpenError::Log { path: path.to_owned() });
    }
    // A commit is on the disk before it is answered.
    connection.pragma_update(None, "synchronous", "FULL").map_err(broken(path))
}

/// Applies what is missing, all of it or nothing.
fn migrate(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(broken(path))?;
    let known = migration::last(MIGRATIONS);
    let newer = OpenError::Newer { path: path.to_owned(), found, known };
    let missing = migration::missing(MIGRATIONS, found).ok_or(newer)?;
    if missing.is_empty() {
        return Ok(());
    }
    let changes: String = missing.iter().map(|migration| migration.sql).collect();
    let script = format!(
        "BEGIN IMMEDIATE; {changes} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {known}; COMMIT"
    );
    connection.execute_batch(&script).map_err(broken(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        (dir, path)
    }

    #[test]
    fn nothing_and_an_empty_file_become_a_new_store_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let (_dir, path) = folder();
        drop(open(&path).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(open(&path).unwrap());
        let (_dir, path) = folder();
        fs::write(&path, b"").unwrap();
        drop(open(&path).unwrap());
    }

    #[test]
    fn what_is_no_store_is_refused_by_name_and_left_as_it_is() {
        let (_dir, path) = folder();
        let text = b"a letter to a friend, long enough to be no header of a database at all; ".repeat(20);
        fs::write(&path, &text).unwrap();
        let error = open(&path).err().unwrap();
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        assert!(matches!(error, OpenError::NoDatabase { .. }));
        assert_eq!(fs::read(&path).unwrap(), text);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_database_of_another_program_is_refused() {
        let (_dir, path) = folder();
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
        assert!(matches!(open(&path).err().unwrap(), OpenError::Foreign { .. }));
    }

    #[test]
    fn a_store_with_a_broken_page_is_refused() {
        let (_dir, path) = folder();
        drop(open(&path).unwrap());
        let mut bytes = fs::read(&path).unwrap();
        let page = bytes.len() / 2 / 4096 * 4096;
        bytes[page..page + 64].fill(0xff);
        fs::write(&path, &bytes).unwrap();
        assert!(matches!(open(&path).err().unwrap(), OpenError::Corrupt { .. } | OpenError::Broken { .. }));
        bytes.truncate(5000);
        fs::write(&path, &bytes).unwrap();
        assert!(matches!(open(&path).err().unwrap(), OpenError::Corrupt { .. } | OpenError::Broken { .. }));
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }

    #[test]
    fn a_log_that_cannot_be_read_is_refused() {
        let (_dir, path) = folder();
        drop(open(&path).unwrap());
        let log = beside(&path, "-wal");
        fs::write(&log, [0xab; 64]).unwrap();
        assert!(matches!(open(&path).err().unwrap(), OpenError::Log { .. }));
        fs::remove_file(&log).unwrap();
        fs::create_dir(&log).unwrap();
        assert!(matches!(open(&path).err().unwrap(), OpenError::File { .. }));
    }

    #[test]
    fn a_newer_schema_is_refused() {
        let (_dir, path) = folder();
        drop(open(&path).unwrap());
        Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
        let error = open(&path).err().unwrap();
        assert!(error.to_string().ends_with("its schema 99 is newer than this program's 4"), "{error}");
    }

    #[test]
    fn a_store_of_the_first_schema_is_brought_up_to_date_with_what_it_holds() {
        let (_dir, path) = folder();
        let old = Connection::open(&path).unwrap();
        old.execute_batch(MIGRATIONS[0].sql).unwrap();
        old.execute_batch(
            "INSERT INTO runs (run_id, identity, budget, options, bearer_hash, bearer_generation, registered_at, \
             expires_at) VALUES ('r', 'write', 1, '{}', zeroblob(32), 1, 1, 2); \
             INSERT INTO pushes (push_id, run_id, request_id, repository, outcome, request_bytes, opened_at) \
             VALUES (zeroblob(16), 'r', 'q', 'acme/api', 'open', 0, 1)",
        )
        .unwrap();
        old.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        old.pragma_update(None, "user_version", 1).unwrap();
        drop(old);
        for _ in 0..2 {
            let files = open(&path).unwrap();
            let of_none = "SELECT count(*) FROM pushes WHERE control IS NULL";
            assert_eq!(files.reader.query_row(of_none, [], |row| row.get::<_, i64>(0)).unwrap(), 1);
            let times = "SELECT registered_at, expires_at, adopted_at FROM runs WHERE run_id = 'r'";
            let times = files.reader.query_row(times, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
            assert_eq!(times.unwrap(), (1, 2, None::<i64>));
        }
    }

    #[test]
    fn a_missing_folder_and_a_folder_in_place_of_the_file_are_refused() {
        let (dir, path) = folder();
        assert!(matches!(open(&path.join("deeper")).err().unwrap(), OpenError::Folder { .. }));
        assert!(matches!(open(dir.path()).err().unwrap(), OpenError::File { .. }));
    }

    #[test]
    fn a_store_that_is_in_use_is_refused() {
        let (_dir, path) = folder();
        let held = open(&path).unwrap();
        assert!(matches!(open(&path).err().unwrap(), OpenError::InUse { .. }));
        drop(held);
        drop(open(&path).unwrap());
    }
}
