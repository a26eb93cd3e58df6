// Command webhook serves one validating and one defaulting webhook on controller-runtime.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

var groupVersion = schema.GroupVersion{Group: "bench.kubewright.dev", Version: "v1"}

// Sample is the benchmarked kind as its author would type it.
type Sample struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              SampleSpec   `json:"spec,omitempty"`
	Status            SampleStatus `json:"status,omitempty"`
}

// SampleSpec is about two kilobytes of ordinary fields.
type SampleSpec struct {
	Replicas int32             `json:"replicas"`
	Image    string            `json:"image"`
	Env      []EnvVar          `json:"env,omitempty"`
	Settings map[string]string `json:"settings,omitempty"`
}

// EnvVar is one name and value.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// SampleStatus is what a controller would report.
type SampleStatus struct {
	Ready int32 `json:"ready,omitempty"`
}

// DeepCopyObject copies a sample.
func (s *Sample) DeepCopyObject() runtime.Object {
	out := &Sample{TypeMeta: s.TypeMeta, Spec: s.Spec, Status: s.Status}
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Env = append([]EnvVar(nil), s.Spec.Env...)
	out.Spec.Settings = make(map[string]string, len(s.Spec.Settings))
	for key, value := range s.Spec.Settings {
		out.Spec.Settings[key] = value
	}
	return out
}

type validator struct{}

func validate(sample *Sample) (admission.Warnings, error) {
	var problems field.ErrorList
	if sample.Spec.Replicas < 0 {
		problems = append(problems, field.Invalid(field.NewPath("spec", "replicas"), sample.Spec.Replicas, "may not be negative"))
	}
	return nil, problems.ToAggregate()
}

func (validator) ValidateCreate(_ context.Context, sample *Sample) (admission.Warnings, error) {
	return validate(sample)
}

func (validator) ValidateUpdate(_ context.Context, _, sample *Sample) (admission.Warnings, error) {
	return validate(sample)
}

func (validator) ValidateDelete(context.Context, *Sample) (admission.Warnings, error) {
	return nil, nil
}

type defaulter struct{}

func (defaulter) Default(_ context.Context, sample *Sample) error {
	if _, given := sample.Spec.Settings["tier"]; !given {
		sample.Spec.Settings["tier"] = "standard"
	}
	return nil
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(port, certDir string) error {
	log.SetLogger(logr.Discard())
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(groupVersion, &Sample{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: number, CertDir: certDir})
	server.Register("/validate-bench-kubewright-dev-v1-sample", admission.WithValidator[*Sample](scheme, validator{}))
	server.Register("/mutate-bench-kubewright-dev-v1-sample", admission.WithDefaulter[*Sample](scheme, defaulter{}))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return server.Start(ctx)
}
