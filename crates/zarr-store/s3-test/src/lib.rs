//! Nothing by itself: `cargo test -p zarr-store-s3-test` holds `zarr-store` to the laws of stores over
//! a real S3 server (s3s-fs) on loopback. Apart from `zarr-store` because the server is large.
