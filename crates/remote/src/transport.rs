//! The way of HTTP requests: a client with sensible limits, and a count of what goes through it.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use opendal::{Buffer, HttpBody, HttpTransport};
use opendal_http_transport_reqwest::ReqwestTransport;

use crate::error::RemoteError;
use crate::meter::Meter;

/// How long a server may take to answer a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// After how long without a sign a connection is asked whether it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Requests, counted.
pub(crate) struct CountingTransport {
    inner: ReqwestTransport,
    meter: Arc<Meter>,
}

impl CountingTransport {
    /// A client that counts into `meter` and keeps at most `connections` open while they are idle.
    ///
    /// # Errors
    /// When the system's certificates can't be read.
    pub fn new(meter: Arc<Meter>, connections: usize) -> Result<Self, RemoteError> {
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_keepalive(KEEP_ALIVE)
            .pool_max_idle_per_host(connections)
            .user_agent(concat!("onefold/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| RemoteError::setup(&error))?;
        Ok(Self {
            inner: ReqwestTransport::new(client),
            meter,
        })
    }
}

impl HttpTransport for CountingTransport {
    async fn fetch(&self, request: Request<Buffer>) -> opendal::Result<Response<HttpBody>> {
        self.meter.request();
        self.inner.fetch(request).await
    }
}
