// A vCenter for tests: govmomi's simulator behind TLS, with faults on request.
//
// It prints one line of JSON when it serves: its address, and the file of the certificate that proves it. Each line of
// JSON on standard input is a fault to come, answered by one line when it is in place; the end of the input ends it.
package main

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/url"
	"os"

	"github.com/vmware/govmomi/simulator"
	_ "github.com/vmware/govmomi/vapi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// A fault fails the next calls of a method, or has the tasks of a name take their time.
type fault struct {
	Method       string `json:"method"`
	Times        int    `json:"times"`
	Message      string `json:"message"`
	Unauthorized bool   `json:"unauthorized"`
	Task         string `json:"task"`
	Milliseconds int    `json:"milliseconds"`
}

func main() {
	user := flag.String("user", "operator", "user that may log in")
	password := flag.String("password", "", "the password of that user")
	template := flag.String("template", "vm-operator-template", "the name of the one template")
	flag.Parse()

	model := simulator.VPX()
	model.Autostart = false
	defer model.Remove()
	if err := model.Create(); err != nil {
		log.Fatal(err)
	}
	makeTemplate(model, *template)
	// Objects can be read while a task takes its time.
	simulator.TaskDelay.MethodDelay = map[string]int{"LockHandoff": 0}
	model.Service.TLS = new(tls.Config)
	model.Service.RegisterEndpoints = true
	model.Service.Listen = &url.URL{Host: "127.0.0.1:0", User: url.UserPassword(*user, *password)}
	server := model.Service.NewServer()
	defer server.Close()
	certificate, err := server.CertificateFile()
	if err != nil {
		log.Fatal(err)
	}
	defer os.Remove(certificate)
	answer(map[string]string{"address": server.URL.Host, "certificate": certificate})

	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var wanted fault
		if err := json.Unmarshal(lines.Bytes(), &wanted); err != nil {
			log.Fatal(err)
		}
		arrange(model.Service, wanted)
		answer(map[string]bool{"arranged": true})
	}
}

func makeTemplate(model *simulator.Model, name string) {
	for _, entity := range model.Map().All("VirtualMachine") {
		machine := entity.(*simulator.VirtualMachine)
		machine.Name, machine.Config.Name, machine.Summary.Config.Name = name, name, name
		machine.Config.Template, machine.Summary.Config.Template = true, true
		return
	}
}

func arrange(service *simulator.Service, wanted fault) {
	if wanted.Task != "" {
		// A new map: running tasks read the old one.
		simulator.TaskDelay.MethodDelay = map[string]int{"LockHandoff": 0, wanted.Task: wanted.Milliseconds}
		return
	}
	rule := &simulator.FaultInjectionRule{
		MethodName: wanted.Method, ObjectType: "*", ObjectName: "*", Probability: 1,
		Message: wanted.Message, MaxCount: wanted.Times, Enabled: true,
		FaultType: simulator.FaultTypeCustom, Fault: &types.SystemError{Reason: wanted.Message},
	}
	if wanted.Unauthorized {
		rule.FaultType = simulator.FaultTypeNotAuthenticated
	}
	service.AddFaultRule(rule)
}

func answer(value any) {
	line, err := json.Marshal(value)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(line))
}
