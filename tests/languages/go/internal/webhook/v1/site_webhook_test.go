package v1

import (
	"context"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	examplev1 "example.com/site-operator/api/v1"
)

// warnings collects the warnings of the API server.
type warnings struct {
	sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.Lock()
	defer w.Unlock()
	w.texts = append(w.texts, text)
}

var _ = Describe("Site webhook", func() {
	var (
		ctx       context.Context
		k8sClient client.Client
		received  *warnings
		site      *examplev1.Site
	)

	BeforeEach(func() {
		ctx = context.Background()
		received = &warnings{}
		config := rest.CopyConfig(cfg)
		config.WarningHandler = received
		var err error
		k8sClient, err = client.New(config, client.Options{Scheme: scheme.Scheme})
		Expect(err).NotTo(HaveOccurred())
		site = &examplev1.Site{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "site-", Namespace: "default"},
			Spec:       examplev1.SiteSpec{HTML: "<title>Blog</title>"},
		}
	})

	It("sets the image of a Site that names none", func() {
		Expect(k8sClient.Create(ctx, site)).To(Succeed())
		Expect(site.Spec.Image).To(Equal(DefaultImage))
		Expect(site.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)), "the default of the schema")
		Expect(received.texts).To(BeEmpty())
	})

	It("keeps the image of a Site that names one", func() {
		site.Spec.Image = "caddy:2"
		Expect(k8sClient.Create(ctx, site)).To(Succeed())
		Expect(site.Spec.Image).To(Equal("caddy:2"))
	})

	It("rejects a page that is not HTML", func() {
		site.Spec.HTML = "hello"
		err := k8sClient.Create(ctx, site)
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring(`admission webhook "validate.sites.example.com" denied the request`)))
		Expect(err).To(MatchError(ContainSubstring(`spec.html: Invalid value: "hello": must start with a tag`)))
	})

	It("rejects a change to a page that is not HTML", func() {
		Expect(k8sClient.Create(ctx, site)).To(Succeed())
		before := site.DeepCopy()
		site.Spec.HTML = "hello"
		err := k8sClient.Patch(ctx, site, client.MergeFrom(before))
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
	})

	It("warns about a page without a title", func() {
		site.Spec.HTML = "<p>Hello</p>"
		Expect(k8sClient.Create(ctx, site)).To(Succeed())
		Expect(received.texts).To(ConsistOf("spec.html: the page has no title"))
	})

	It("runs in a dry run, too", func() {
		Expect(k8sClient.Create(ctx, site, client.DryRunAll)).To(Succeed())
		Expect(site.Spec.Image).To(Equal(DefaultImage))
		err := k8sClient.Get(ctx, client.ObjectKeyFromObject(site), &examplev1.Site{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	})

	It("is not asked about what the schema rejects", func() {
		negative := int32(-1)
		site.Spec.Replicas = &negative
		err := k8sClient.Create(ctx, site)
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("spec.replicas: Invalid value: -1")))
	})
})
