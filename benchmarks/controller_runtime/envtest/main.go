// Command envtest starts controller-runtime's test environment, uses it as tests do, and says what that took.
//
// The binaries are those of KUBEBUILDER_ASSETS. With -only-start nothing is checked: the times are for comparisons.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Figures is what a run took, in seconds and kilobytes.
type Figures struct {
	Start     float64 `json:"start"`
	Write     float64 `json:"write"`
	Stop      float64 `json:"stop"`
	Processor float64 `json:"cpu"`
	// Memory is the sum of what each program held at most.
	Memory int64 `json:"memory"`
	// Checks are what a test environment must do, true or false.
	Checks map[string]bool `json:"checks,omitempty"`
}

const writes = 200

func main() {
	onlyStart := flag.Bool("only-start", false, "measure, but check nothing")
	flag.Parse()
	log.SetLogger(logr.Discard())
	figures, err := run(*onlyStart)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(figures); err != nil {
		panic(err)
	}
}

func run(onlyStart bool) (*Figures, error) {
	ctx := context.Background()
	figures := &Figures{}
	environment := &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition()}}
	begin := time.Now()
	config, err := environment.Start()
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	defer func() { _ = environment.Stop() }()
	figures.Start = time.Since(begin).Seconds()
	admin, err := client.New(config, client.Options{})
	if err != nil {
		return nil, err
	}
	begin = time.Now()
	for number := range writes {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%d", number), Namespace: "default"}}
		if err := admin.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("create: %w", err)
		}
	}
	figures.Write = time.Since(begin).Seconds()
	if !onlyStart {
		if figures.Checks, err = check(ctx, environment, config, admin); err != nil {
			return nil, err
		}
	}
	figures.Memory = memory()
	begin = time.Now()
	if err := environment.Stop(); err != nil {
		return nil, fmt.Errorf("stop: %w", err)
	}
	figures.Stop = time.Since(begin).Seconds()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		return nil, err
	}
	figures.Processor = seconds(usage.Utime) + seconds(usage.Stime)
	return figures, nil
}

func check(ctx context.Context, environment *envtest.Environment, config *rest.Config, admin client.Client) (map[string]bool, error) {
	checks := map[string]bool{}
	user, err := environment.AddUser(envtest.User{Name: "ann", Groups: []string{"some"}}, nil)
	if err != nil {
		return nil, err
	}
	powerless, err := client.New(user.Config(), client.Options{})
	if err != nil {
		return nil, err
	}
	err = powerless.Get(ctx, client.ObjectKey{Namespace: "default", Name: "c0"}, &corev1.ConfigMap{})
	checks["a user without roles is forbidden"] = apierrors.IsForbidden(err)

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot", Namespace: "default"}}
	if err := admin.Create(ctx, account); err != nil {
		return nil, err
	}
	request := &authenticationv1.TokenRequest{}
	if err := admin.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, err
	}
	robot := rest.AnonymousClientConfig(config)
	robot.BearerToken = request.Status.Token
	asRobot, err := client.New(robot, client.Options{})
	if err != nil {
		return nil, err
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := asRobot.Create(ctx, review); err != nil {
		return nil, err
	}
	name := "system:serviceaccount:default:robot"
	checks["a service account's token is accepted"] = review.Status.UserInfo.Username == name

	out, _, err := environment.ControlPlane.KubeCtl().Run("get", "configmap", "c0", "-o", "name")
	if err == nil {
		text := make([]byte, 64)
		count, _ := out.Read(text)
		checks["kubectl reads an object"] = string(text[:count]) == "configmap/c0\n"
	}

	// The test kit forgets the certificate directory when it stops the API server, but not the port.
	server := environment.ControlPlane.GetAPIServer()
	if err := server.Stop(); err != nil {
		return nil, err
	}
	if err := server.Start(); err != nil {
		return nil, err
	}
	again, err := environment.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return nil, err
	}
	restarted, err := client.New(again.Config(), client.Options{})
	if err != nil {
		return nil, err
	}
	err = restarted.Get(ctx, client.ObjectKey{Namespace: "default", Name: "c0"}, &corev1.ConfigMap{})
	checks["objects survive a restart of the API server"] = err == nil
	return checks, nil
}

func definition() *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "samples.bench.kubewright.dev"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "bench.kubewright.dev",
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Sample", Plural: "samples"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "object", XPreserveUnknownFields: &preserve,
					},
				},
			}},
		},
	}
}

// memory returns the peak memory of all programs that this one started, in kilobytes.
func memory() int64 {
	var sum int64
	files, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		fields := map[string]int64{}
		for _, line := range strings.Split(string(data), "\n") {
			words := strings.Fields(line)
			if len(words) > 1 {
				fields[words[0]], _ = strconv.ParseInt(words[1], 10, 64)
			}
		}
		if fields["PPid:"] == int64(os.Getpid()) {
			sum += fields["VmHWM:"]
		}
	}
	return sum
}

func seconds(value syscall.Timeval) float64 {
	return float64(value.Sec) + float64(value.Usec)/1e6
}
