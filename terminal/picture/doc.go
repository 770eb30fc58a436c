// Package picture draws what is on a terminal as a picture, SVG or PNG:
//
//	s, err := terminal.Screen()
//	...
//	err = picture.PNG(file, s.Screen)
//
// It is apart from package screen because of the fonts of PNG, which have 0.9 MB: what keeps terminals, here and on other machines, does not need them.
package picture
