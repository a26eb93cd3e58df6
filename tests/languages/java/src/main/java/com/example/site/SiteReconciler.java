package com.example.site;

import io.javaoperatorsdk.operator.api.reconciler.Cleaner;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.DeleteControl;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import io.javaoperatorsdk.operator.api.reconciler.Workflow;
import io.javaoperatorsdk.operator.api.reconciler.dependent.Dependent;
import java.util.function.Consumer;

/** Sets the status of a Site after its ConfigMap was applied, and purges a Site from the CDN before it is deleted. */
@Workflow(dependents = @Dependent(type = PagesConfigMap.class))
@ControllerConfiguration(finalizerName = SiteReconciler.FINALIZER)
public class SiteReconciler implements Reconciler<Site>, Cleaner<Site> {

  public static final String FINALIZER = "example.com/cdn";

  private final Consumer<String> purgeFromCdn;

  /**
   * @param purgeFromCdn removes what a content delivery network holds of the Site with this UID
   */
  public SiteReconciler(Consumer<String> purgeFromCdn) {
    this.purgeFromCdn = purgeFromCdn;
  }

  @Override
  public UpdateControl<Site> reconcile(Site site, Context<Site> context) {
    var status = new Site.Status(site.getMetadata().getGeneration(), site.getSpec().pages().size());
    if (status.equals(site.getStatus())) {
      return UpdateControl.noUpdate();
    }
    site.setStatus(status);
    return UpdateControl.patchStatus(site);
  }

  @Override
  public DeleteControl cleanup(Site site, Context<Site> context) {
    purgeFromCdn.accept(site.getMetadata().getUid());
    return DeleteControl.defaultDelete();
  }
}
