// Package controller contains the reconciler of Sites.
package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	examplev1 "example.com/site-operator/api/v1"
)

// ConditionReady is True when all replicas of a Site are ready.
const ConditionReady = "Ready"

// SiteReconciler gives each Site a ConfigMap with its page and a Deployment that serves it.
type SiteReconciler struct {
	client.Client
	Recorder events.EventRecorder
}

// +kubebuilder:rbac:groups=example.com,resources=sites,verbs=get;list;watch
// +kubebuilder:rbac:groups=example.com,resources=sites/status,verbs=patch
// +kubebuilder:rbac:groups=example.com,resources=sites/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile creates or updates the ConfigMap and the Deployment of a Site, and sets its status.
func (r *SiteReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	site := &examplev1.Site{}
	if err := r.Get(ctx, req.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: site.Name, Namespace: site.Namespace}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, page, func() error {
		page.Data = map[string]string{"index.html": site.Spec.HTML}
		return controllerutil.SetControllerReference(site, page, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, fmt.Errorf("ConfigMap %s/%s: %w", page.Namespace, page.Name, err)
	}

	server := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: site.Name, Namespace: site.Namespace}}
	result, err := controllerutil.CreateOrUpdate(ctx, r.Client, server, func() error {
		desiredDeployment(site, server)
		return controllerutil.SetControllerReference(site, server, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("Deployment %s/%s: %w", server.Namespace, server.Name, err)
	}
	if result == controllerutil.OperationResultCreated {
		r.Recorder.Eventf(site, server, corev1.EventTypeNormal, "Created", "Create", "Created Deployment %s", server.Name)
	}

	before := site.DeepCopy()
	site.Status.ReadyReplicas = server.Status.ReadyReplicas
	meta.SetStatusCondition(&site.Status.Conditions, readyCondition(site))
	err = r.Status().Patch(ctx, site, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		// The cache is behind: the event of the newer version starts another reconciliation.
		return ctrl.Result{Requeue: true}, nil
	}
	return ctrl.Result{}, err
}

// desiredDeployment sets the fields of the Deployment that the Site decides, and leaves the others as they are.
func desiredDeployment(site *examplev1.Site, server *appsv1.Deployment) {
	labels := map[string]string{"app.kubernetes.io/name": "site", "app.kubernetes.io/instance": site.Name}
	server.Spec.Replicas = site.Spec.Replicas
	server.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	server.Spec.Template.Labels = labels

	pod := &server.Spec.Template.Spec
	if len(pod.Containers) != 1 {
		pod.Containers = []corev1.Container{{}}
	}
	container := &pod.Containers[0]
	container.Name = "server"
	container.Image = site.Spec.Image
	container.VolumeMounts = []corev1.VolumeMount{{Name: "page", MountPath: "/usr/share/nginx/html"}}
	if len(pod.Volumes) != 1 {
		pod.Volumes = []corev1.Volume{{}}
	}
	volume := &pod.Volumes[0]
	volume.Name = "page"
	if volume.ConfigMap == nil {
		volume.ConfigMap = &corev1.ConfigMapVolumeSource{}
	}
	volume.ConfigMap.Name = site.Name
}

func readyCondition(site *examplev1.Site) metav1.Condition {
	condition := metav1.Condition{
		Type:               ConditionReady,
		Status:             metav1.ConditionFalse,
		Reason:             "WaitingForReplicas",
		ObservedGeneration: site.Generation,
	}
	desired := int32(1)
	if site.Spec.Replicas != nil {
		desired = *site.Spec.Replicas
	}
	condition.Message = fmt.Sprintf("%d of %d replicas are ready", site.Status.ReadyReplicas, desired)
	if site.Status.ReadyReplicas >= desired {
		condition.Status = metav1.ConditionTrue
		condition.Reason = "AllReplicasReady"
	}
	return condition
}

// SetupWithManager adds the controller to a manager.
func (r *SiteReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&examplev1.Site{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&appsv1.Deployment{}).
		Complete(r)
}
