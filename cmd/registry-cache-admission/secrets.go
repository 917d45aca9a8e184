package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secretsOfFiles reads Secrets from files for package shoot.
type secretsOfFiles struct {
	secrets []*corev1.Secret
	// complete means that a Secret that was not found does not exist. Otherwise its check is skipped
	// and reported to notes.
	complete bool
	notes    io.Writer
	// ambiguous is the last error of match. It invalidates the result of Check.
	ambiguous error
}

// get implements shoot.Secrets.
func (s *secretsOfFiles) get(_ context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	name := strings.TrimPrefix(key.String(), "/")
	secret, err := match(s.secrets, key.Namespace, key.Name)
	switch {
	case err != nil:
		s.ambiguous = fmt.Errorf("looking for the Secret %s: %w", name, err)
		return nil, nil
	case secret != nil:
		return stored(secret, key.Namespace), nil
	case s.complete:
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	}
	fmt.Fprintf(s.notes, "the Secret %s is in no file: check skipped (see --resources)\n", name)
	return nil, nil
}

// stored returns the Secret as the API server stores it for a Shoot in the namespace, with
// stringData merged into data.
func stored(secret *corev1.Secret, namespace string) *corev1.Secret {
	result := secret.DeepCopy()
	if result.Namespace == "" {
		result.Namespace = namespace
	}
	for key, value := range result.StringData {
		if result.Data == nil {
			result.Data = map[string][]byte{}
		}
		result.Data[key] = []byte(value)
	}
	result.StringData = nil
	return result
}
