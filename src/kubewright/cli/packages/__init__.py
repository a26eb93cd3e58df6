"""What is rendered from declarations and shipped: `manifests`, `build`, `bundle`, `scorecard`."""
