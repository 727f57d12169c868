//! Copies buffers with futures on a tokio runtime, a virtual device behind them; the driver is a task
//! like any other: `cargo run -p dray --example tokio_copy`.

use dray::virt::{Options, VirtualDevice};
use dray::{Request, task};
use dray_device::{DeviceConfig, WorkQueueConfig, WorkQueueMode};

async fn copies() -> Result<usize, Box<dyn std::error::Error>> {
    let device = VirtualDevice::start(config(), Options::default())?;
    let (client, driver) = task::channel(device.open(0, 16)?);
    let driver = tokio::spawn(driver);
    let tasks: Vec<_> = (0..64_u8)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move {
                let request = Request::copy(vec![n; 10_000], vec![0; 10_000]);
                let done = client.request(request).await?;
                let copied = done.buffers.source == done.buffers.destination;
                Ok::<bool, Box<task::NotDone<Vec<u8>>>>(copied)
            })
        })
        .collect();
    drop(client);
    let mut copied = 0;
    for task in tasks {
        copied += usize::from(task.await??);
    }
    // It ends when all clients are gone.
    driver.await?;
    Ok(copied)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    println!("{} buffers copied", runtime.block_on(copies())?);
    Ok(())
}

/// A device as of Sapphire Rapids, with one engine and one dedicated queue.
fn config() -> DeviceConfig {
    let queue = WorkQueueConfig {
        max_transfer_size: 1 << 20,
        ..WorkQueueConfig::new(0, WorkQueueMode::Dedicated, 32)
    };
    DeviceConfig::sapphire_rapids(1, vec![queue])
}
