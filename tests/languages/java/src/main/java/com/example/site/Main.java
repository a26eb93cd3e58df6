package com.example.site;

import io.javaoperatorsdk.operator.Operator;
import java.time.Duration;
import org.slf4j.LoggerFactory;

/** Starts the operator with the current kubeconfig or service account. */
public final class Main {

  private Main() {}

  public static void main(String[] arguments) {
    var log = LoggerFactory.getLogger(Main.class);
    var operator = new Operator();
    operator.register(new SiteReconciler(uid -> log.info("Purging Site uid={}", uid)));
    operator.installShutdownHook(Duration.ofSeconds(10));
    operator.start();
  }
}
