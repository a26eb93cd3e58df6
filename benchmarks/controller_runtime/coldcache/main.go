// Command coldcache fills a controller-runtime cache with one kind and says what that took.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
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

// SampleList is a list of samples.
type SampleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Sample `json:"items"`
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

// DeepCopyObject copies a list of samples.
func (l *SampleList) DeepCopyObject() runtime.Object {
	out := &SampleList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Sample))
	}
	return out
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig string) error {
	log.SetLogger(logr.Discard())
	started, startup := time.Now(), cpuTime()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(groupVersion, &Sample{}, &SampleList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	// Managed fields are dropped on both sides of the comparison.
	options := cache.Options{Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields()}
	samples, err := cache.New(config, options)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	go func() { _ = samples.Start(ctx) }()
	if _, err := samples.GetInformer(ctx, &Sample{}); err != nil {
		return err
	}
	if !samples.WaitForCacheSync(ctx) {
		return errors.New("the cache did not sync")
	}
	elapsed, at := time.Since(started), time.Now()
	var list SampleList
	if err := samples.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	return report(len(list.Items), elapsed, startup, at)
}

func report(objects int, elapsed, startup time.Duration, at time.Time) error {
	rss, err := peakMemory()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"at":      float64(at.UnixMicro()) / 1e6,
		"objects": float64(objects),
		"seconds": elapsed.Seconds(),
		"startup": startup.Seconds(),
		"cpu":     cpuTime().Seconds(),
		"rss":     rss,
	})
}

// peakMemory returns the most bytes that this process has held; what getrusage says includes its parent's (Linux).
func peakMemory() (float64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var kilobytes float64
	_, err = fmt.Sscan(after, &kilobytes)
	return kilobytes * 1024, err
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
