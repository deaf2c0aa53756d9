//! Buckets and containers: which credentials and which server they have.

use core::str::FromStr;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::{HttpRequest, HttpRequestBody};
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::multipart::MultipartStore;
use object_store::{ClientOptions, ObjectStore, RetryConfig, StaticCredentialProvider};

use super::clients::Reach;
use super::failure::{Credentials, Failure};
use super::profile::Profile;
use super::settings::{Settings, is_true, variable};
use super::transport::{Connector, Transport};
use super::url::{RemoteUrl, Scheme};
use crate::prelude::*;

/// A bucket or a container.
#[derive(Debug)]
pub(super) struct Cloud {
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) parts: Arc<dyn MultipartStoreDebug>,
    /// The same, and an upload that it completes replaces nothing. Only S3 has such a thing.
    pub(super) creating: Option<Arc<dyn MultipartStoreDebug>>,
    pub(super) access: Credentials,
}

/// What both parts of a store's interface are.
pub(super) trait MultipartStoreDebug: MultipartStore + core::fmt::Debug {}

impl<T: MultipartStore + core::fmt::Debug> MultipartStoreDebug for T {}

impl Cloud {
    /// The store that a URL is in.
    pub(super) async fn of(
        url: &RemoteUrl,
        settings: &Settings,
        transport: &Transport,
    ) -> Result<Self, Failure> {
        match url.scheme {
            Scheme::S3 => s3(&url.authority, settings, transport).await,
            Scheme::Gcs => gcs(&url.authority, settings, transport).await,
            Scheme::Azure => azure(url, settings, transport),
            Scheme::Http | Scheme::Https | Scheme::Hub => {
                Err(Failure::Store(format!("{url} is in no bucket")))
            }
        }
    }
}

/// Everything is tried again in one place, for all stores alike.
fn once() -> RetryConfig {
    RetryConfig {
        max_retries: 0,
        retry_timeout: Duration::ZERO,
        ..RetryConfig::default()
    }
}

/// The options of a program that a store's library knows; for it, the names that fsspec has are others.
fn known<K: FromStr>(
    settings: &Settings,
    fsspec: &[(&str, &str)],
) -> Result<Vec<(K, String)>, Failure> {
    let mut known = Vec::new();
    for (key, value) in &settings.options {
        let key = key.to_ascii_lowercase();
        if ["anonymous", "anon"].contains(&key.as_str()) {
            continue;
        }
        let alias = fsspec.iter().find(|(alias, _)| *alias == key);
        let name = alias.map_or(key.as_str(), |(_, name)| *name);
        let parsed = name
            .parse()
            .map_err(|_| Failure::Store(format!("there is no option {key:?} for such a store")));
        known.push((parsed?, value.clone()));
    }
    Ok(known)
}

async fn s3(bucket: &str, settings: &Settings, transport: &Transport) -> Result<Cloud, Failure> {
    const FSSPEC: [(&str, &str); 4] = [
        ("key", "access_key_id"),
        ("secret", "secret_access_key"),
        ("token", "session_token"),
        ("endpoint_url", "endpoint"),
    ];
    let options: Vec<(AmazonS3ConfigKey, String)> = known(settings, &FSSPEC)?;
    let has = |key: AmazonS3ConfigKey| options.iter().any(|(known, _)| *known == key);
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        .with_http_connector(Connector(transport.clone()))
        .with_retry(once())
        .with_allow_http(true);
    // Left to itself, whichever of these the environment lists last would count.
    let given = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]
        .into_iter()
        .find_map(variable);
    let mut endpoint = given;
    let has_keys = has(AmazonS3ConfigKey::AccessKeyId) || variable("AWS_ACCESS_KEY_ID").is_some();
    let has_role = [
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ]
    .into_iter()
    .any(|name| variable(name).is_some());
    let profile = Profile::read();
    let advice = profile
        .advice()
        .filter(|_| !has_keys && !has_role && !settings.is_anonymous());
    if let (Some(advice), true) = (&advice, profile.is_named) {
        return Err(Failure::Store(advice.clone()));
    }
    let has_region = ["AWS_REGION", "AWS_DEFAULT_REGION"]
        .into_iter()
        .any(|name| variable(name).is_some());
    if let Some(region) = profile.region.filter(|_| !has_region) {
        builder = builder.with_region(region);
    }
    endpoint = endpoint.or(profile.endpoint);
    let mut has_credentials = has_keys;
    if let (Some(key), Some(secret), false) = (profile.key, profile.secret, has_keys) {
        has_credentials = true;
        builder = builder
            .with_access_key_id(key)
            .with_secret_access_key(secret);
        if let Some(token) = profile.token {
            builder = builder.with_token(token);
        }
    }
    if let Some(endpoint) = endpoint {
        builder = builder
            .with_config(AmazonS3ConfigKey::S3Endpoint, endpoint.clone())
            .with_endpoint(endpoint);
    }
    for (key, value) in options {
        if key == AmazonS3ConfigKey::Endpoint {
            builder = builder.with_config(AmazonS3ConfigKey::S3Endpoint, value.clone());
        }
        builder = builder.with_config(key, value);
    }
    let is_anonymous = settings.is_anonymous()
        || (!has_credentials && !has_role && !is_machine_of_aws(transport).await);
    let builder = builder.with_skip_signature(is_anonymous);
    let mut condition = HeaderMap::new();
    condition.insert(http::header::IF_NONE_MATCH, HeaderValue::from_static("*"));
    let options = ClientOptions::new()
        .with_allow_http(true)
        .with_default_headers(condition);
    let creating = builder.clone().with_client_options(options).build()?;
    let store = Arc::new(builder.build()?);
    Ok(Cloud {
        objects: store.clone(),
        parts: store,
        creating: Some(Arc::new(creating)),
        access: Credentials {
            is_anonymous,
            advice,
        },
    })
}

/// Whether this machine gets credentials from its cloud: the first request that it would take, and a second at most.
async fn is_machine_of_aws(transport: &Transport) -> bool {
    if variable("AWS_EC2_METADATA_DISABLED").is_some_and(|value| is_true(&value)) {
        return false;
    }
    let mut request = HttpRequest::new(HttpRequestBody::empty());
    *request.method_mut() = Method::PUT;
    *request.uri_mut() = http::Uri::from_static("http://169.254.169.254/latest/api/token");
    let seconds = HeaderValue::from_static("60");
    request
        .headers_mut()
        .insert("x-aws-ec2-metadata-token-ttl-seconds", seconds);
    let answer = transport.send(request, Reach::Near).await;
    answer.is_ok_and(|answer| answer.status().is_success())
}

async fn gcs(bucket: &str, settings: &Settings, transport: &Transport) -> Result<Cloud, Failure> {
    let options: Vec<(GoogleConfigKey, String)> =
        known(settings, &[("token", "application_credentials")])?;
    let has_options = options.iter().any(|(key, _)| {
        matches!(
            key,
            GoogleConfigKey::ServiceAccount
                | GoogleConfigKey::ServiceAccountKey
                | GoogleConfigKey::ApplicationCredentials
                | GoogleConfigKey::BearerToken
        )
    });
    let mut builder = GoogleCloudStorageBuilder::from_env()
        .with_bucket_name(bucket)
        .with_http_connector(Connector(transport.clone()))
        .with_retry(once())
        .with_client_options(ClientOptions::new().with_allow_http(true));
    let emulator = variable("STORAGE_EMULATOR_HOST");
    if let Some(host) = &emulator {
        let url = if host.contains("://") {
            host.clone()
        } else {
            format!("http://{host}")
        };
        builder = builder.with_base_url(url.trim_end_matches('/'));
    }
    for (key, value) in options {
        builder = builder.with_config(key, value);
    }
    let has_variable = [
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_SERVICE_ACCOUNT",
        "GOOGLE_SERVICE_ACCOUNT_PATH",
        "GOOGLE_SERVICE_ACCOUNT_KEY",
        "GOOGLE_BEARER_TOKEN",
    ]
    .into_iter()
    .any(|name| variable(name).is_some());
    let usual = std::env::home_dir()
        .map(|home| home.join(".config/gcloud/application_default_credentials.json"));
    let has_file = usual.is_some_and(|path| path.is_file());
    let has_credentials = has_options || has_variable || has_file;
    let is_anonymous = settings.is_anonymous()
        || (!has_credentials && (emulator.is_some() || !is_machine_of_google(transport).await));
    if is_anonymous {
        // Some requests ask for credentials even then, and whoever has none would be asked for them.
        let nobody = GcpCredential {
            bearer: String::new(),
        };
        builder = builder.with_credentials(Arc::new(StaticCredentialProvider::new(nobody)));
    }
    let store = Arc::new(builder.with_skip_signature(is_anonymous).build()?);
    Ok(Cloud {
        objects: store.clone(),
        parts: store,
        creating: None,
        access: Credentials {
            is_anonymous,
            advice: None,
        },
    })
}

async fn is_machine_of_google(transport: &Transport) -> bool {
    let mut request = HttpRequest::new(HttpRequestBody::empty());
    *request.uri_mut() =
        http::Uri::from_static("http://metadata.google.internal/computeMetadata/v1/");
    request
        .headers_mut()
        .insert("metadata-flavor", HeaderValue::from_static("Google"));
    let answer = transport.send(request, Reach::Near).await;
    answer.is_ok_and(|answer| answer.status().is_success())
}

fn azure(url: &RemoteUrl, settings: &Settings, transport: &Transport) -> Result<Cloud, Failure> {
    const FSSPEC: [(&str, &str); 1] = [("account", "account_name")];
    let options: Vec<(AzureConfigKey, String)> = known(settings, &FSSPEC)?;
    let has_options = options.iter().any(|(key, _)| {
        !matches!(
            key,
            AzureConfigKey::AccountName | AzureConfigKey::Endpoint | AzureConfigKey::ContainerName
        )
    });
    let mut builder = MicrosoftAzureBuilder::from_env()
        .with_url(format!("abfss://{}/", url.authority))
        .with_http_connector(Connector(transport.clone()))
        .with_retry(once())
        .with_client_options(ClientOptions::new().with_allow_http(true));
    for (key, value) in options {
        builder = builder.with_config(key, value);
    }
    let has_variable = [
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_ACCESS_KEY",
        "AZURE_STORAGE_MASTER_KEY",
        "AZURE_STORAGE_SAS_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
        "AZURE_STORAGE_TOKEN",
        "AZURE_STORAGE_CLIENT_ID",
        "AZURE_CLIENT_ID",
        "AZURE_STORAGE_USE_EMULATOR",
        "AZURE_FEDERATED_TOKEN_FILE",
        "AZURE_USE_AZURE_CLI",
        "AZURE_MSI_ENDPOINT",
        "AZURE_IDENTITY_ENDPOINT",
        "IDENTITY_ENDPOINT",
    ]
    .into_iter()
    .any(|name| variable(name).is_some());
    let is_anonymous = settings.is_anonymous() || !(has_options || has_variable);
    let store = Arc::new(builder.with_skip_signature(is_anonymous).build()?);
    Ok(Cloud {
        objects: store.clone(),
        parts: store,
        creating: None,
        access: Credentials {
            is_anonymous,
            advice: None,
        },
    })
}
