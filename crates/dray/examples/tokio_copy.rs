//! Copies buffers with futures on a tokio runtime, by the work queues of this machine, or by the core where there are
//! none: `cargo run -p dray --example tokio_copy`, or `dray run -- target/debug/examples/tokio_copy`. The driver has a thread
//! of its own, for it looks again and again while operations are in flight.

use std::time::Duration;

use dray::channels::{Channels, ChannelsOptions};
use dray::{Executor, Request, hw, task};

/// A copy that has a time: what it gives, or `None`. Where a device has it by then its buffers stay with the driver until it
/// is done; where it has not, it is not executed.
async fn copy_within(
    client: &task::Client<Vec<u8>>,
    bytes: Vec<u8>,
    time: Duration,
) -> Result<Option<task::Done<Vec<u8>>>, Box<dyn std::error::Error>> {
    let destination = vec![0; bytes.len()];
    tokio::select! {
        done = client.request(Request::copy(bytes, destination)) => Ok(Some(done?)),
        () = tokio::time::sleep(time) => Ok(None),
    }
}

async fn copies(client: task::Client<Vec<u8>>) -> Result<(), Box<dyn std::error::Error>> {
    let (mut copied, mut by_device) = (0, 0);
    for n in 0..64_u8 {
        match copy_within(&client, vec![n; 100_000], Duration::from_secs(10)).await? {
            Some(done) => {
                assert_eq!(done.buffers.source, done.buffers.destination);
                copied += 1;
                by_device += usize::from(done.executor == Executor::Hardware);
            }
            None => println!("buffer {n} is late"),
        }
    }
    // As a task of its own, and with an error that says why.
    let uneven = client.request(Request::copy(vec![0; 3], vec![0; 4]));
    let error = tokio::spawn(uneven).await?.err();
    let error = error.map_or_else(String::new, |error| error.to_string());
    println!("{copied} buffers copied, {by_device} of them by a device; refused: {error}");
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let queues = hw::open_all(hw::HwOptions::default()).unwrap_or_default();
    let (client, driver) = task::channel(Channels::new(queues, ChannelsOptions::default())?);
    let driver = std::thread::spawn(move || driver.run());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    // The driver ends when the last client is gone.
    runtime.block_on(copies(client))?;
    driver.join().map_err(|_| "the driver has panicked")?;
    Ok(())
}
