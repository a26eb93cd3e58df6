use kube::Client;

#[tokio::main]
async fn main() -> Result<(), kube::Error> {
    site_operator::run(Client::try_default().await?).await;
    Ok(())
}
