package com.example.site;

import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;
import java.util.Map;

/** A web site: its pages are served from a ConfigMap. */
@Group("example.com")
@Version("v1")
public class Site extends CustomResource<Site.Spec, Site.Status> implements Namespaced {

  /** The desired state: the HTML of each page by its file name. */
  public record Spec(Map<String, String> pages, String language) {}

  /** The observed state. */
  public record Status(Long observedGeneration, Integer pages) {}
}
