// Package charts holds the Helm chart that installs the extension on a seed, and the image vector of the images that the
// extension deploys into shoots. It must not know what is done with either.
package charts
