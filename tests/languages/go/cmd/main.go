// The manager of the site operator.
package main

import (
	"flag"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	examplev1 "example.com/site-operator/api/v1"
	"example.com/site-operator/internal/controller"
	webhookv1 "example.com/site-operator/internal/webhook/v1"
)

func main() {
	leaderElect := flag.Bool("leader-elect", false, "Allow one active manager at a time.")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*leaderElect); err != nil {
		ctrl.Log.Error(err, "manager failed")
		os.Exit(1)
	}
}

func run(leaderElect bool) error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := examplev1.AddToScheme(scheme); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		HealthProbeBindAddress: ":8081",
		LeaderElection:         leaderElect,
		LeaderElectionID:       "site-operator.example.com",
	})
	if err != nil {
		return err
	}
	reconciler := &controller.SiteReconciler{Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("site-controller")}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := webhookv1.SetupSiteWebhookWithManager(mgr); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
