//! The library's handle on a place, as an address and the environment say, with its layers: a limit of
//! time below, tries that are repeated above it.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use opendal::layers::{RetryLayer, TimeoutLayer};
use opendal::services;
use opendal::{Executor, HttpTransporter, OperationContext, Operator};

use crate::error::{RemoteError, RemoteErrorKind};
use crate::location::Address;
use crate::meter::Meter;
use crate::transport::CountingTransport;

/// How a store on a server is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteSettings {
    /// Operations at the same time.
    pub connections: usize,
    /// Most bytes a second that are sent.
    pub upload_bytes_a_second: Option<u64>,
    /// Most bytes a second that are fetched.
    pub download_bytes_a_second: Option<u64>,
    /// How often a try is repeated once the server has answered at all. Before, it is
    /// [`RemoteSettings::FIRST_RETRIES`]: a wrong address is told soon.
    pub retries: usize,
    /// The wait before the first repetition; each further one is twice as long, with some chance in it.
    pub retry_delay: Duration,
    /// The longest such wait.
    pub retry_delay_max: Duration,
    /// How long one request for an object, or for a part of one, may take.
    pub transfer_timeout: Duration,
    /// How long other requests may take.
    pub request_timeout: Duration,
}

impl RemoteSettings {
    /// Repetitions until the server has answered for the first time.
    pub const FIRST_RETRIES: usize = 3;
}

impl Default for RemoteSettings {
    /// About four minutes of tries for one operation; 8 MiB in five minutes are 28 KiB a second, so
    /// that slow lines are not taken for dead ones.
    fn default() -> Self {
        Self {
            connections: 8,
            upload_bytes_a_second: None,
            download_bytes_a_second: None,
            retries: 13,
            retry_delay: Duration::from_millis(200),
            retry_delay_max: Duration::from_secs(30),
            transfer_timeout: Duration::from_secs(300),
            request_timeout: Duration::from_secs(60),
        }
    }
}

/// Handles on one place that differ in how often they try.
pub(crate) struct Operators {
    /// Never tries again.
    pub once: Operator,
    /// For a server that has not answered yet.
    pub eager: Operator,
    /// For one that has.
    pub patient: Operator,
}

impl Operators {
    pub fn of(
        address: &Address,
        settings: &RemoteSettings,
        meter: &Arc<Meter>,
        environment: Environment<'_>,
    ) -> Result<Self, RemoteError> {
        let transport = CountingTransport::new(Arc::clone(meter), settings.connections)?;
        let context =
            OperationContext::from_parts(HttpTransporter::new(transport), Executor::default());
        let timeouts = TimeoutLayer::new()
            .with_timeout(settings.request_timeout)
            .with_io_timeout(settings.transfer_timeout);
        let once = operator(address, environment)?
            .with_context(context)
            .layer(timeouts);
        let retrying = |times: usize| {
            let meter = Arc::clone(meter);
            let layer = RetryLayer::new()
                .with_max_times(times)
                .with_min_delay(settings.retry_delay)
                .with_max_delay(settings.retry_delay_max)
                .with_factor(2.0)
                .with_jitter()
                .with_notify(move |_: opendal::layers::RetryEvent<'_>| meter.retry());
            once.clone().layer(layer)
        };
        Ok(Self {
            eager: retrying(settings.retries.min(RemoteSettings::FIRST_RETRIES)),
            patient: retrying(settings.retries),
            once,
        })
    }
}

/// Where credentials and settings of services are looked up: by name, as in a process's environment.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A variable of this process's environment.
pub(crate) fn of_process(name: &str) -> Option<String> {
    env::var(name).ok()
}

fn operator(address: &Address, environment: Environment<'_>) -> Result<Operator, RemoteError> {
    let variable = |name: &str| environment(name).filter(|value| !value.is_empty());
    match address {
        Address::S3 {
            endpoint,
            bucket,
            prefix,
        } => built(s3(endpoint.as_deref(), bucket, prefix, &variable)),
        #[cfg(feature = "sftp")]
        Address::Sftp { host, path } => {
            let mut builder = services::Sftp::default().endpoint(host).root(path);
            if let Some(key) = variable("ONEFOLD_SFTP_KEY") {
                builder = builder.key(&key);
            }
            if let Some(strategy) = variable("ONEFOLD_SFTP_KNOWN_HOSTS") {
                builder = builder.known_hosts_strategy(&strategy);
            }
            built(builder)
        }
        #[cfg(feature = "webdav")]
        Address::WebDav { endpoint, path } => {
            let mut builder = services::Webdav::default().endpoint(endpoint).root(path);
            if let Some(user) = variable("ONEFOLD_WEBDAV_USER") {
                builder = builder.username(&user);
            }
            if let Some(password) = variable("ONEFOLD_WEBDAV_PASSWORD") {
                builder = builder.password(&password);
            }
            if let Some(token) = variable("ONEFOLD_WEBDAV_TOKEN") {
                builder = builder.token(&token);
            }
            built(builder)
        }
        #[cfg(feature = "gcs")]
        Address::Gcs { bucket, prefix } => {
            let mut builder = services::Gcs::default().bucket(bucket).root(prefix);
            if let Some(path) = variable("GOOGLE_APPLICATION_CREDENTIALS") {
                builder = builder.credential_path(&path);
            }
            built(builder)
        }
        #[cfg(feature = "azure")]
        Address::Azure { container, prefix } => {
            let mut builder = services::Azblob::default()
                .container(container)
                .root(prefix);
            if let Some(account) = variable("AZURE_STORAGE_ACCOUNT") {
                let endpoint = variable("AZURE_STORAGE_ENDPOINT")
                    .unwrap_or_else(|| format!("https://{account}.blob.core.windows.net"));
                builder = builder.account_name(&account).endpoint(&endpoint);
            }
            if let Some(key) = variable("AZURE_STORAGE_KEY") {
                builder = builder.account_key(&key);
            }
            if let Some(token) = variable("AZURE_STORAGE_SAS_TOKEN") {
                builder = builder.sas_token(&token);
            }
            built(builder)
        }
        #[cfg(not(all(
            feature = "sftp",
            feature = "webdav",
            feature = "gcs",
            feature = "azure"
        )))]
        _ => Err(RemoteError::new(
            RemoteErrorKind::Address,
            "this onefold was built without that service",
        )),
    }
}

fn built(builder: impl opendal::Builder) -> Result<Operator, RemoteError> {
    Operator::new(builder).map_err(|error| RemoteError::of(&error))
}

/// Credentials come from where the service's own tools look: `AWS_*`, `~/.aws`, the machine's role.
fn s3(
    endpoint: Option<&str>,
    bucket: &str,
    prefix: &str,
    variable: Environment<'_>,
) -> services::S3 {
    let region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
    let mut builder = services::S3::default()
        .bucket(bucket)
        .root(prefix)
        .region(region.as_deref().unwrap_or("us-east-1"))
        // Buckets with object lock ask for a checksum of what is uploaded.
        .checksum_algorithm("crc32c");
    // The library looks into the process's environment and into ~/.aws by itself.
    if let (Some(id), Some(secret)) = (
        variable("AWS_ACCESS_KEY_ID"),
        variable("AWS_SECRET_ACCESS_KEY"),
    ) {
        builder = builder.access_key_id(&id).secret_access_key(&secret);
        if let Some(token) = variable("AWS_SESSION_TOKEN") {
            builder = builder.session_token(&token);
        }
    }
    let endpoint = endpoint
        .map(str::to_owned)
        .or_else(|| variable("AWS_ENDPOINT_URL_S3"))
        .or_else(|| variable("AWS_ENDPOINT_URL"));
    let style = variable("ONEFOLD_S3_STYLE");
    // AWS takes the bucket for a part of the host's name; most others do as well, but few say so.
    let is_virtual = match style.as_deref() {
        Some(style) => style == "virtual",
        None => endpoint.is_none() && !bucket.contains('.'),
    };
    if is_virtual {
        builder = builder.enable_virtual_host_style();
    }
    if let Some(endpoint) = endpoint {
        builder = builder.endpoint(&endpoint).disable_ec2_metadata();
    }
    if let Some(class) = variable("ONEFOLD_S3_STORAGE_CLASS") {
        builder = builder.default_storage_class(&class);
    }
    builder
}
