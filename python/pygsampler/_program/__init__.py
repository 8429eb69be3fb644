"""What programs are written in, and how they are traced."""
