package com.example.site;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.processing.dependent.kubernetes.CRUDKubernetesDependentResource;
import io.javaoperatorsdk.operator.processing.dependent.kubernetes.KubernetesDependent;

/** The ConfigMap that holds the pages of a Site. The framework applies it with server-side apply. */
@KubernetesDependent
public class PagesConfigMap extends CRUDKubernetesDependentResource<ConfigMap, Site> {

  @Override
  protected ConfigMap desired(Site site, Context<Site> context) {
    return new ConfigMapBuilder()
        .withNewMetadata()
        .withName(site.getMetadata().getName())
        .withNamespace(site.getMetadata().getNamespace())
        .addToLabels("example.com/language", site.getSpec().language())
        .endMetadata()
        .withData(site.getSpec().pages())
        .build();
  }
}
