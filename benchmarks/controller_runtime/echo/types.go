package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "bench.kubewright.dev", Version: "v1"}

// Echo is the benchmarked kind as its author would type it.
type Echo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              EchoSpec   `json:"spec,omitempty"`
	Status            EchoStatus `json:"status,omitempty"`
}

// EchoSpec is what to echo.
type EchoSpec struct {
	Message string `json:"message"`
}

// EchoStatus is what was echoed.
type EchoStatus struct {
	Echoed string `json:"echoed,omitempty"`
}

// EchoList is a list of echoes.
type EchoList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Echo `json:"items"`
}

// DeepCopyObject copies an echo.
func (e *Echo) DeepCopyObject() runtime.Object {
	out := &Echo{TypeMeta: e.TypeMeta, Spec: e.Spec, Status: e.Status}
	e.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// DeepCopyObject copies a list of echoes.
func (l *EchoList) DeepCopyObject() runtime.Object {
	out := &EchoList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Echo))
	}
	return out
}
