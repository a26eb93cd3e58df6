// Command echo is the benchmarked operator on controller-runtime: each Echo becomes an owned ConfigMap and a status.
//
// Usage: echo KUBECONFIG [apply]; with "apply" it writes by server-side apply, else by CreateOrUpdate.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const workers = 16

type reconciler struct {
	client.Client
	scheme *runtime.Scheme
	keep   func(context.Context, *reconciler, *Echo) error
}

// Reconcile makes the ConfigMap and the status of one Echo so.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var echo Echo
	if err := r.Get(ctx, request.NamespacedName, &echo); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.keep(ctx, r, &echo); err != nil {
		return ctrl.Result{}, err
	}
	if echo.Status.Echoed == echo.Spec.Message {
		return ctrl.Result{}, nil
	}
	echo.Status.Echoed = echo.Spec.Message
	return ctrl.Result{}, r.Status().Update(ctx, &echo)
}

func createOrUpdate(ctx context.Context, r *reconciler, echo *Echo) error {
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: echo.Name, Namespace: echo.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		child.Labels = map[string]string{"bench": "echo"}
		child.Data = map[string]string{"message": echo.Spec.Message}
		return controllerutil.SetControllerReference(echo, child, r.scheme)
	})
	return err
}

func apply(ctx context.Context, r *reconciler, echo *Echo) error {
	owner := metav1apply.OwnerReference().
		WithAPIVersion(groupVersion.String()).WithKind("Echo").WithName(echo.Name).WithUID(echo.UID).
		WithController(true).WithBlockOwnerDeletion(true)
	child := corev1apply.ConfigMap(echo.Name, echo.Namespace).
		WithLabels(map[string]string{"bench": "echo"}).
		WithData(map[string]string{"message": echo.Spec.Message}).
		WithOwnerReferences(owner)
	return r.Apply(ctx, child, client.FieldOwner("echo"), client.ForceOwnership)
}

func main() {
	mode := ""
	if len(os.Args) > 2 {
		mode = os.Args[2]
	}
	if err := run(os.Args[1], mode); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig, mode string) error {
	log.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	scheme.AddKnownTypes(groupVersion, &Echo{}, &EchoList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	consistent := mode == "read-your-writes"
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		Client:                 client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &consistent}},
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
	})
	if err != nil {
		return err
	}
	reconciler := &reconciler{Client: manager.GetClient(), scheme: scheme, keep: createOrUpdate}
	if mode == "apply" {
		reconciler.keep = apply
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&Echo{}).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(reconciler)
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
