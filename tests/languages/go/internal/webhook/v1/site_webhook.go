// Package v1 contains the admission webhooks of Sites.
package v1

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	examplev1 "example.com/site-operator/api/v1"
)

// DefaultImage is the web server of a Site that names none.
const DefaultImage = "nginx:1.29"

// +kubebuilder:webhook:path=/mutate-example-com-v1-site,mutating=true,failurePolicy=fail,sideEffects=None,groups=example.com,resources=sites,verbs=create;update,versions=v1,name=default.sites.example.com,admissionReviewVersions=v1

// SiteDefaulter sets the defaults that the schema cannot express.
type SiteDefaulter struct{}

// Default sets the image of a Site that names none.
func (*SiteDefaulter) Default(_ context.Context, site *examplev1.Site) error {
	if site.Spec.Image == "" {
		site.Spec.Image = DefaultImage
	}
	return nil
}

// +kubebuilder:webhook:path=/validate-example-com-v1-site,mutating=false,failurePolicy=fail,sideEffects=None,groups=example.com,resources=sites,verbs=create;update,versions=v1,name=validate.sites.example.com,admissionReviewVersions=v1

// SiteValidator rejects pages that are not HTML.
type SiteValidator struct{}

// ValidateCreate validates a new Site.
func (*SiteValidator) ValidateCreate(_ context.Context, site *examplev1.Site) (admission.Warnings, error) {
	return validate(site)
}

// ValidateUpdate validates a changed Site.
func (*SiteValidator) ValidateUpdate(_ context.Context, _, site *examplev1.Site) (admission.Warnings, error) {
	return validate(site)
}

// ValidateDelete accepts each deletion.
func (*SiteValidator) ValidateDelete(context.Context, *examplev1.Site) (admission.Warnings, error) {
	return nil, nil
}

func validate(site *examplev1.Site) (admission.Warnings, error) {
	html := field.NewPath("spec", "html")
	if !strings.HasPrefix(site.Spec.HTML, "<") {
		return nil, apierrors.NewInvalid(
			examplev1.GroupVersion.WithKind("Site").GroupKind(), site.Name,
			field.ErrorList{field.Invalid(html, site.Spec.HTML, "must start with a tag")},
		)
	}
	if !strings.Contains(site.Spec.HTML, "<title>") {
		return admission.Warnings{html.String() + ": the page has no title"}, nil
	}
	return nil, nil
}

// SetupSiteWebhookWithManager adds the webhooks to a manager.
func SetupSiteWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &examplev1.Site{}).
		WithDefaulter(&SiteDefaulter{}).
		WithValidator(&SiteValidator{}).
		Complete()
}
