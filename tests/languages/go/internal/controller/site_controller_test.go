package controller

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	. "sigs.k8s.io/controller-runtime/pkg/envtest/komega"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	examplev1 "example.com/site-operator/api/v1"
)

var _ = Describe("Site controller", func() {
	var (
		ctx    context.Context
		site   *examplev1.Site
		page   *corev1.ConfigMap
		server *appsv1.Deployment
	)

	BeforeEach(func() {
		ctx = context.Background()
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "site-"}}
		Expect(k8sClient.Create(ctx, namespace)).To(Succeed())
		key := metav1.ObjectMeta{Name: "blog", Namespace: namespace.Name}
		site = &examplev1.Site{
			ObjectMeta: key,
			Spec: examplev1.SiteSpec{
				HTML:     "<title>Blog</title>",
				Image:    "nginx:1.29",
				Replicas: ptr.To[int32](2),
			},
		}
		page = &corev1.ConfigMap{ObjectMeta: key}
		server = &appsv1.Deployment{ObjectMeta: key}
		Expect(k8sClient.Create(ctx, site)).To(Succeed())
		Eventually(Object(site)).Should(HaveField("Status.Conditions", Not(BeEmpty())))
	})

	It("creates a ConfigMap and a Deployment that the Site owns", func() {
		Expect(Get(page)()).To(Succeed())
		Expect(page.Data).To(HaveKeyWithValue("index.html", "<title>Blog</title>"))
		Expect(metav1.IsControlledBy(page, site)).To(BeTrue())

		Expect(Get(server)()).To(Succeed())
		Expect(server.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
		Expect(server.Spec.Template.Spec.Containers).To(ConsistOf(HaveField("Image", "nginx:1.29")))
		Expect(metav1.IsControlledBy(server, site)).To(BeTrue())
	})

	It("records an Event when it creates the Deployment", func() {
		events := &eventsv1.EventList{}
		Eventually(ObjectList(events, client.InNamespace(site.Namespace))).Should(HaveField("Items", ConsistOf(And(
			HaveField("Reason", "Created"),
			HaveField("Regarding.UID", site.UID),
			HaveField("Note", "Created Deployment blog"),
		))))
	})

	It("is ready when the Deployment is", func() {
		Expect(site.Status.Conditions).To(ConsistOf(And(
			HaveField("Type", ConditionReady),
			HaveField("Status", metav1.ConditionFalse),
			HaveField("Message", "0 of 2 replicas are ready"),
		)))

		// envtest runs no Deployment controller: the test sets the status that it would set.
		Eventually(UpdateStatus(server, func() {
			server.Status.ObservedGeneration = server.Generation
			server.Status.Replicas = 2
			server.Status.ReadyReplicas = 2
		})).Should(Succeed())

		Eventually(Object(site)).Should(And(
			HaveField("Status.ReadyReplicas", BeEquivalentTo(2)),
			HaveField("Status.Conditions", ConsistOf(HaveField("Status", metav1.ConditionTrue))),
		))
	})

	It("restores the page when someone edits the ConfigMap", func() {
		Eventually(Update(page, func() { page.Data["index.html"] = "<title>Defaced</title>" })).Should(Succeed())
		Eventually(Object(page)).Should(HaveField("Data", HaveKeyWithValue("index.html", "<title>Blog</title>")))
	})

	It("restores a ConfigMap that was deleted", func() {
		Expect(Get(page)()).To(Succeed())
		deleted := page.UID
		Expect(k8sClient.Delete(ctx, page)).To(Succeed())
		Eventually(Object(page)).Should(HaveField("UID", Not(Equal(deleted))))
	})

	It("scales the Deployment with the scale subresource of the Site", func() {
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 5}}
		Expect(k8sClient.SubResource("scale").Update(ctx, site, client.WithSubResourceBody(scale))).To(Succeed())
		Eventually(Object(server)).Should(HaveField("Spec.Replicas", HaveValue(BeEquivalentTo(5))))
	})

	It("handles many Sites at once", func() {
		for number := range 10 {
			many := site.DeepCopy()
			many.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprintf("site-%d", number), Namespace: site.Namespace}
			Expect(k8sClient.Create(ctx, many)).To(Succeed())
		}
		servers := &appsv1.DeploymentList{}
		Eventually(ObjectList(servers, client.InNamespace(site.Namespace))).Should(HaveField("Items", HaveLen(11)))
	})
})
