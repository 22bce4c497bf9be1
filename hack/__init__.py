"""Programs that help to build and try muster; none of them is shipped."""
