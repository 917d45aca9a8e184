package shoot_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/webhook/shoot"
)

const configPath = "spec.extensions[1].providerConfig"

// withConfig returns a Shoot with workers and two extensions. The second one is registry-cache with
// the caches in JSON.
func withConfig(caches string) *gardencorev1beta1.Shoot {
	s := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "s"}}
	s.Spec.Extensions = []gardencorev1beta1.Extension{{Type: "other"}, {Type: "registry-cache", ProviderConfig: &runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"registry.extensions.gardener.cloud/v1alpha3","kind":"RegistryConfig","caches":[` + caches + `]}`),
	}}}
	s.Spec.Provider.Workers = []gardencorev1beta1.Worker{{Name: "w"}}
	return s
}

// edited returns a copy of the Shoot after the change.
func edited(s *gardencorev1beta1.Shoot, change func(*gardencorev1beta1.Shoot)) *gardencorev1beta1.Shoot {
	changed := s.DeepCopy()
	change(changed)
	return changed
}

// respelled does what withConfig does, but formats the config differently and reorders its keys.
func respelled(caches string) *gardencorev1beta1.Shoot {
	return edited(withConfig(caches), func(s *gardencorev1beta1.Shoot) {
		s.Spec.Extensions[1].ProviderConfig.Raw = []byte(`{ "caches": [` + caches + `],
			"kind": "RegistryConfig", "apiVersion": "registry.extensions.gardener.cloud/v1alpha3" }`)
	})
}

// refersToBoth adds the entries "creds" and "ca" to spec.resources. Their Secrets do not exist.
func refersToBoth(s *gardencorev1beta1.Shoot) *gardencorev1beta1.Shoot {
	return edited(refersTo(s, "Secret", "absent"), func(s *gardencorev1beta1.Shoot) { s.Spec.Resources[0].Name = "ca" })
}

func refersTo(s *gardencorev1beta1.Shoot, kind, secret string) *gardencorev1beta1.Shoot {
	return edited(s, func(s *gardencorev1beta1.Shoot) {
		s.Spec.Resources = []gardencorev1beta1.NamedResourceReference{
			{Name: "unrelated", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c"}},
			{Name: "creds", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: kind, Name: secret}},
		}
	})
}

// gardenSecret returns a Secret of the namespace garden-dev.
func gardenSecret(_ context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	immutable := key.Name != "mutable"
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Immutable: &immutable,
		Data: map[string][]byte{"username": []byte("u"), "password": []byte("p")},
	}
	switch key.Name {
	case "echoed":
		secret.Data["username"] = []byte("u\n")
	case "no-json":
		secret.Data["username"] = []byte("_json_key")
	case "access-key":
		secret.Data = map[string][]byte{"accessKeyID": []byte("AKIA"), "secretAccessKey": []byte("s")}
	}
	switch {
	case key.Namespace != "garden-dev" || key.Name == "absent":
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	case key.Name == "broken":
		return nil, errors.New("etcd leader changed")
	case key.Name == "unknown":
		return nil, nil
	}
	return secret, nil
}

func noSecrets(_ context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	return nil, errors.New("unexpected read of " + key.String())
}

const (
	plain    = `{"upstream":"a.test"}`
	private  = `{"upstream":"a.test","secretReferenceName":"creds"}`
	bundled  = `{"upstream":"b.test","caBundleSecretReferenceName":"ca"}`
	wrong    = `{"upstream":"A.test"}`
	tenGi    = `{"upstream":"a.test","volume":{"size":"10Gi"}}`
	fiveGi   = `{"upstream":"a.test","volume":{"size":"5Gi"}}`
	slow     = `{"upstream":"a.test","volume":{"storageClassName":"slow"}}`
	fast     = `{"upstream":"a.test","volume":{"storageClassName":"fast"}}`
	elastic  = `{"upstream":"123456789012.dkr.ecr.eu-central-1.amazonaws.com","secretReferenceName":"creds"}`
	disabled = true
)

func disable(s *gardencorev1beta1.Shoot) { s.Spec.Extensions[1].Disabled = new(disabled) }
func remove(s *gardencorev1beta1.Shoot)  { s.Spec.Extensions = s.Spec.Extensions[:1] }
func deleting(s *gardencorev1beta1.Shoot) {
	s.DeletionTimestamp = &metav1.Time{}
}
func workerless(s *gardencorev1beta1.Shoot) { s.Spec.Provider.Workers = nil }
func unrelated(s *gardencorev1beta1.Shoot) {
	s.Spec.Kubernetes.Version = "1.36.4"
	s.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}
	s.Annotations = map[string]string{"gardener.cloud/operation": "reconcile"}
}

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		shoot, old *gardencorev1beta1.Shoot
		want       string // prefix of the only error, "" if valid
	}{
		"new, valid":                     {withConfig(plain), nil, ""},
		"new, without the extension":     {edited(withConfig(wrong), remove), nil, ""},
		"new, disabled":                  {edited(withConfig(wrong), disable), nil, ""},
		"new, invalid":                   {withConfig(wrong), nil, configPath + ".caches[0].upstream: "},
		"new, no caches":                 {withConfig(""), nil, configPath + ".caches: Required value"},
		"new, unknown field":             {withConfig(`{"upstream":"a.test","tls":true}`), nil, configPath + ".caches[0].tls: Invalid value: unknown field"},
		"new, no config":                 {edited(withConfig(""), func(s *gardencorev1beta1.Shoot) { s.Spec.Extensions[1].ProviderConfig = nil }), nil, configPath + ": Required value"},
		"new, no JSON":                   {edited(withConfig(""), func(s *gardencorev1beta1.Shoot) { s.Spec.Extensions[1].ProviderConfig.Raw = []byte("{") }), nil, configPath + ": Invalid value"},
		"new, workerless":                {edited(withConfig(plain), workerless), nil, "spec.extensions[1].type: Forbidden"},
		"new, workerless, disabled":      {edited(edited(withConfig(plain), workerless), disable), nil, ""},
		"new, in deletion":               {edited(withConfig(wrong), deleting), nil, ""},
		"twice":                          {edited(withConfig(plain), func(s *gardencorev1beta1.Shoot) { s.Spec.Extensions[0] = s.Spec.Extensions[1] }), nil, "spec.extensions[1].type: Duplicate value"},
		"twice, one of them disabled":    {edited(withConfig(plain), func(s *gardencorev1beta1.Shoot) { s.Spec.Extensions[0] = s.Spec.Extensions[1]; disable(s) }), nil, ""},
		"invalid as before":              {edited(withConfig(wrong), unrelated), withConfig(wrong), ""},
		"invalid, in deletion":           {edited(withConfig(wrong), deleting), withConfig(plain), ""},
		"becomes invalid":                {withConfig(wrong), withConfig(plain), configPath + ".caches[0].upstream"},
		"becomes enabled and invalid":    {withConfig(wrong), edited(withConfig(wrong), disable), configPath + ".caches[0].upstream"},
		"becomes disabled":               {edited(withConfig(wrong), disable), withConfig(wrong), ""},
		"extension is added":             {withConfig(wrong), edited(withConfig(wrong), remove), configPath + ".caches[0].upstream"},
		"extension is removed":           {edited(withConfig(wrong), remove), withConfig(wrong), ""},
		"volume shrinks":                 {withConfig(fiveGi), withConfig(tenGi), ""},
		"class changes":                  {withConfig(slow), withConfig(fast), configPath + ".caches[0].volume.storageClassName: Invalid value"},
		"class, was disabled":            {withConfig(slow), edited(withConfig(fast), disable), ""},
		"class, was undecodable":         {withConfig(slow), edited(withConfig(fast), func(s *gardencorev1beta1.Shoot) { s.Spec.Extensions[1].ProviderConfig.Raw[0] = '[' }), ""},
		"workers are removed":            {edited(withConfig(plain), workerless), withConfig(plain), "spec.extensions[1].type: Forbidden"},
		"never had workers":              {edited(withConfig(plain), workerless), edited(withConfig(plain), workerless), ""},
		"reference without entry":        {withConfig(private), nil, configPath + ".caches[0].secretReferenceName: Invalid value: \"creds\": must be the name of an entry of spec.resources"},
		"refers to a ConfigMap":          {refersTo(withConfig(private), "ConfigMap", "good"), nil, configPath + ".caches[0].secretReferenceName: Invalid value: \"creds\": must refer to a Secret"},
		"refers to a valid Secret":       {refersTo(withConfig(private), "Secret", "good"), nil, ""},
		"refers to a mutable Secret":     {refersTo(withConfig(private), "Secret", "mutable"), nil, configPath + ".caches[0].secretReferenceName: Invalid value: the Secret garden-dev/mutable must be immutable"},
		"refers to a missing Secret":     {refersTo(withConfig(private), "Secret", "absent"), nil, configPath + ".caches[0].secretReferenceName: Invalid value: \"creds\": refers to the Secret garden-dev/absent, which does not exist"},
		"refers to an unreadable Secret": {refersTo(withConfig(private), "Secret", "broken"), nil, configPath + ".caches[0].secretReferenceName: Internal error: the Secret garden-dev/broken cannot be read, try again: etcd leader changed"},
		"refers to an echoed Secret":     {refersTo(withConfig(private), "Secret", "echoed"), nil, configPath + ".caches[0].secretReferenceName: Invalid value: the Secret garden-dev/echoed has white space in the value of the key \"username\""},
		"refers to no JSON key":          {refersTo(withConfig(private), "Secret", "no-json"), nil, configPath + ".caches[0].secretReferenceName: Invalid value: the Secret garden-dev/no-json must have the JSON key of a service account"},
		"access key for Amazon ECR":      {refersTo(withConfig(elastic), "Secret", "access-key"), nil, ""},
		"access key for another":         {refersTo(withConfig(private), "Secret", "access-key"), nil, configPath + ".caches[0].secretReferenceName: Invalid value: the Secret garden-dev/access-key has an access key of AWS, but a.test"},
		"rotation to an echoed Secret":   {refersTo(withConfig(private), "Secret", "echoed"), refersTo(withConfig(private), "Secret", "good"), configPath + ".caches[0].secretReferenceName"},
		"v1alpha1": {edited(withConfig(""), func(s *gardencorev1beta1.Shoot) {
			s.Spec.Extensions[1].ProviderConfig.Raw = []byte(`{"apiVersion":"registry.extensions.gardener.cloud/v1alpha1","kind":"RegistryConfig","caches":[{"upstream":"docker.io","size":"10Gi"}]}`)
		}), nil, configPath + ".apiVersion: Invalid value: \"registry.extensions.gardener.cloud/v1alpha1\": is no longer supported: write registry.extensions.gardener.cloud/v1alpha3, volume.size instead of size"},
		"refers to an unknown Secret":  {refersTo(withConfig(private), "Secret", "unknown"), nil, ""},
		"only the resource changes":    {refersTo(withConfig(private), "Secret", "mutable"), refersTo(withConfig(private), "Secret", "good"), configPath + ".caches[0].secretReferenceName"},
		"only the resource is removed": {withConfig(private), refersTo(withConfig(private), "Secret", "good"), configPath + ".caches[0].secretReferenceName"},
		"rotation":                     {refersTo(withConfig(private), "Secret", "good2"), refersTo(withConfig(private), "Secret", "good"), ""},
		"Secret invalid meanwhile":     {edited(refersTo(withConfig(private), "Secret", "mutable"), unrelated), refersTo(withConfig(private), "Secret", "mutable"), ""},
		"Secret unreadable meanwhile":  {edited(refersTo(withConfig(private), "Secret", "broken"), unrelated), refersTo(withConfig(private), "Secret", "broken"), ""},
		"only the formatting changes meanwhile": {edited(refersTo(respelled(private), "Secret", "absent"), unrelated),
			refersTo(withConfig(private), "Secret", "absent"), ""},
		"formatting and Secret change": {edited(refersTo(respelled(private), "Secret", "mutable"), unrelated),
			refersTo(withConfig(private), "Secret", "good"), configPath + ".caches[0].secretReferenceName"},
		"formatting and a field change": {respelled(slow), withConfig(fast), configPath + ".caches[0].volume.storageClassName"},
		"a size in another unit meanwhile": {refersTo(withConfig(`{"upstream":"a.test","secretReferenceName":"creds","volume":{"size":"10240Mi"}}`), "Secret", "absent"),
			refersTo(withConfig(`{"upstream":"a.test","secretReferenceName":"creds","volume":{"size":"10Gi"}}`), "Secret", "absent"), ""},
		"same invalid JSON": {edited(withConfig(plain), func(s *gardencorev1beta1.Shoot) { s.Spec.Extensions[1].ProviderConfig.Raw = []byte("{"); unrelated(s) }),
			edited(withConfig(plain), func(s *gardencorev1beta1.Shoot) { s.Spec.Extensions[1].ProviderConfig.Raw = []byte("{") }), ""},
		"differently invalid JSON": {edited(withConfig(plain), func(s *gardencorev1beta1.Shoot) { s.Spec.Extensions[1].ProviderConfig.Raw = []byte("[") }),
			edited(withConfig(plain), func(s *gardencorev1beta1.Shoot) { s.Spec.Extensions[1].ProviderConfig.Raw = []byte("{") }), configPath + ": Invalid value"},
		"one of two is disabled": {edited(withConfig(wrong), func(s *gardencorev1beta1.Shoot) { s.Spec.Extensions[0] = s.Spec.Extensions[1]; disable(s) }),
			edited(withConfig(wrong), func(s *gardencorev1beta1.Shoot) { s.Spec.Extensions[0] = s.Spec.Extensions[1] }), "spec.extensions[0].providerConfig.caches[0].upstream"},
		"config is removed": {edited(withConfig(plain), func(s *gardencorev1beta1.Shoot) { s.Spec.Extensions[1].ProviderConfig = nil }), withConfig(plain), configPath + ": Required value"},
		"resources in another order meanwhile": {edited(refersToBoth(withConfig(private+","+bundled)), func(s *gardencorev1beta1.Shoot) { slices.Reverse(s.Spec.Resources) }),
			refersToBoth(withConfig(private + "," + bundled)), ""},
		"another resource changes": {edited(refersTo(withConfig(private), "Secret", "mutable"), func(s *gardencorev1beta1.Shoot) { s.Spec.Resources = s.Spec.Resources[1:] }),
			refersTo(withConfig(private), "Secret", "mutable"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			secrets := gardenSecret
			if test.want == "" && strings.Contains(name, "meanwhile") {
				secrets = noSecrets
			}
			errs := shoot.Check(t.Context(), test.shoot, test.old, secrets)
			if len(errs) == 0 && test.want == "" {
				return
			}
			if len(errs) != 1 || test.want == "" || !strings.HasPrefix(shoot.Text(errs[0]), test.want) {
				t.Errorf("got %v, want %q", errs, test.want)
			}
		})
	}
}

// TestCheckFindsEveryError checks that references are also validated if the config has another
// error.
func TestCheckFindsEveryError(t *testing.T) {
	errs := shoot.Check(t.Context(), edited(withConfig(wrong+","+private), workerless), nil, gardenSecret)
	want := []string{"spec.extensions[1].type", configPath + ".caches[0].upstream", configPath + ".caches[1].secretReferenceName"}
	if len(errs) != len(want) {
		t.Fatalf("got %v, want errors at %q", errs, want)
	}
	for i, path := range want {
		if errs[i].Field != path {
			t.Errorf("got %v, want errors at %q", errs, want)
		}
	}
}

func TestTextIsOneLine(t *testing.T) {
	errs := shoot.Check(t.Context(), withConfig(`{"upstream":"a\nb"}`), nil, gardenSecret)
	errs = append(errs, shoot.Check(t.Context(), edited(withConfig(""), func(s *gardencorev1beta1.Shoot) {
		s.Spec.Extensions[1].ProviderConfig.Raw = []byte("a: b\n\t- c\n")
	}), nil, gardenSecret)...)
	if len(errs) != 2 {
		t.Fatalf("got %v", errs)
	}
	for _, err := range errs {
		if text := shoot.Text(err); strings.ContainsAny(text, "\r\n") || !strings.HasPrefix(text, configPath) {
			t.Errorf("got %q", text)
		}
	}
}
