//! Tries what Rust's standard library asks of a system, in a cage and on Linux alike:
//! tests/rust/run compares the output.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::{mpsc, Arc, Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime};
use std::{env, fs, io, panic, thread};

fn threads() {
    let sum = Arc::new(Mutex::new(0));
    let all = (1..=4).map(|n| {
        let sum = sum.clone();
        thread::Builder::new().name(format!("number {n}")).spawn(move || {
            *sum.lock().expect("nobody panics") += n;
            thread::current().name().map(str::to_owned)
        })
    });
    let names = all.map(|one| one.expect("a thread starts").join().expect("and ends")).collect::<Vec<_>>();
    println!("threads: {} {names:?}", sum.lock().expect("nobody panics"));

    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || (0..3).for_each(|n| sender.send(n * n).expect("somebody listens")));
    println!("channel: {:?}", receiver.iter().collect::<Vec<_>>());

    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let other = pair.clone();
    thread::spawn(move || {
        *other.0.lock().expect("nobody panics") = true;
        other.1.notify_one();
    });
    let ready = pair.1.wait_while(pair.0.lock().expect("nobody panics"), |ready| !*ready);
    println!("condition: {}", *ready.expect("nobody panics"));

    let began = Instant::now();
    thread::sleep(Duration::from_millis(20));
    println!("sleep: {}", began.elapsed() >= Duration::from_millis(20));
}

fn files(directory: &str) -> io::Result<()> {
    let file = format!("{directory}/file");
    fs::create_dir_all(format!("{directory}/a/b"))?;
    fs::write(&file, "some bytes")?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640))?;
    let meta = fs::metadata(&file)?;
    let age = SystemTime::now().duration_since(meta.modified()?).unwrap_or_default();
    println!(
        "stat: {} {:o} {} {} {}",
        meta.len(),
        meta.mode(),
        meta.nlink(),
        meta.blksize(),
        age < Duration::from_secs(60)
    );
    fs::hard_link(&file, format!("{directory}/second"))?;
    std::os::unix::fs::symlink("file", format!("{directory}/link"))?;
    println!("links: {} {:?}", fs::metadata(&file)?.nlink(), fs::read_link(format!("{directory}/link"))?);
    let mut names = fs::read_dir(directory)?
        .map(|entry| entry.map(|entry| (entry.file_name(), entry.file_type().map(|kind| kind.is_dir()).ok())))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort();
    println!("entries: {names:?}");
    fs::OpenOptions::new().append(true).open(&file)?.write_all(b", more")?;
    println!("read: {:?} {}", fs::read_to_string(&file)?, fs::copy(&file, format!("{directory}/copy"))?);
    let time = SystemTime::UNIX_EPOCH + Duration::new(4_000_000_000, 123_456_789);
    fs::File::options().write(true).open(&file)?.set_modified(time)?;
    println!("time: {}.{}", fs::metadata(&file)?.mtime(), fs::metadata(&file)?.mtime_nsec());
    println!(
        "error: {:?}",
        fs::read(format!("{directory}/none")).map_err(|error| (error.kind(), error.raw_os_error()))
    );
    fs::remove_dir_all(directory)?;
    println!("gone: {}", fs::metadata(directory).is_err());
    Ok(())
}

fn processes() -> io::Result<()> {
    let me = env::current_exe()?;
    let out = Command::new(&me).args(["child", "one two"]).env("WORD", "said").output()?;
    println!(
        "output: {:?} {:?} {:?}",
        out.status.code(),
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
    let mut child = Command::new(&me).arg("echo").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    child.stdin.take().expect("a pipe").write_all(b"through a pipe")?;
    let mut text = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut text)?;
    println!("pipes: {text:?} {}", child.wait()?.success());
    println!("none: {:?}", Command::new("/no/such/program").spawn().map(|_| ()).map_err(|error| error.kind()));
    Ok(())
}

fn sockets() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let client = thread::spawn(move || -> io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(b"ping")?;
        let mut text = [0; 4];
        stream.read_exact(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    });
    let (mut stream, _) = listener.accept()?;
    let mut text = [0; 4];
    stream.read_exact(&mut text)?;
    stream.write_all(b"pong")?;
    println!("tcp: {} {}", String::from_utf8_lossy(&text), client.join().expect("it does not panic")?);
    let (mut one, mut two) = UnixStream::pair()?;
    one.write_all(b"pair")?;
    two.read_exact(&mut text)?;
    println!("unix: {}", String::from_utf8_lossy(&text));
    Ok(())
}

fn panics() {
    panic::set_hook(Box::new(|_| ()));
    struct Tells;
    impl Drop for Tells {
        fn drop(&mut self) {
            println!("dropped");
        }
    }
    let caught = panic::catch_unwind(|| {
        let _tells = Tells;
        panic!("one");
    });
    println!("caught: {:?}", caught.err().and_then(|what| what.downcast_ref::<&str>().map(|text| text.to_string())));
    println!("in a thread: {}", thread::spawn(|| panic!("two")).join().is_err());
}

fn main() -> io::Result<()> {
    let mut words = env::args().skip(1);
    match words.next().as_deref() {
        Some("child") => {
            println!("{:?} {:?}", words.next(), env::var("WORD"));
            eprintln!("to stderr");
            std::process::exit(9);
        }
        Some("echo") => return io::copy(&mut io::stdin(), &mut io::stdout()).map(|_| ()),
        _ => (),
    }
    let map = ["one", "two", "three"].into_iter().zip(1..).collect::<HashMap<_, _>>();
    println!("map: {} {:?}", map.len(), map.get("two"));
    println!("numbers: {} {:.17} {:?}", u128::MAX, 0.1f64, "2.5e-3".parse::<f64>());
    threads();
    files("rust-files")?;
    processes()?;
    sockets()?;
    panics();
    Ok(())
}
