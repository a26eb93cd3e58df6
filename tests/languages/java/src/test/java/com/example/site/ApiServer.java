package com.example.site;

import io.fabric8.kubeapitest.KubeAPIServer;
import io.fabric8.kubeapitest.KubeAPIServerConfigBuilder;
import io.fabric8.kubeapitest.Utils;
import io.fabric8.kubeapitest.binary.OSInfo;
import io.fabric8.kubernetes.client.Config;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;

/** An API server from the directory that KUBEBUILDER_ASSETS names, started by fabric8's kube-api-test. */
final class ApiServer implements AutoCloseable {

  private final Path folder;
  private final KubeAPIServer server;

  ApiServer() throws IOException {
    var assets = System.getenv("KUBEBUILDER_ASSETS");
    if (assets == null) {
      throw new IllegalStateException(
          "KUBEBUILDER_ASSETS is not set: it names a directory with etcd, kube-apiserver and kubectl");
    }
    folder = Files.createTempDirectory("apiserver");
    // kube-api-test looks for its programs in k8s/VERSION-OS-ARCHITECTURE of its directory.
    var versions = Files.createDirectory(folder.resolve("k8s"));
    Files.createSymbolicLink(versions.resolve("assets" + Utils.platformSuffix(new OSInfo())), Path.of(assets));
    server =
        new KubeAPIServer(
            KubeAPIServerConfigBuilder.anAPIServerConfig()
                .withTestDir(folder.toString())
                .withApiServerVersion("assets")
                .withOfflineMode(true)
                .withApiServerFlag("--bind-address", "127.0.0.1")
                .withApiServerFlag("--advertise-address", "127.0.0.1")
                .build());
    server.start();
  }

  Config config() {
    return Config.fromKubeconfig(server.getKubeConfigYaml());
  }

  @Override
  public void close() throws IOException {
    server.stop();
    try (var files = Files.walk(folder)) {
      files.sorted(Comparator.reverseOrder()).forEach(ApiServer::delete);
    }
  }

  private static void delete(Path file) {
    try {
      Files.delete(file);
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
  }
}
