"""Models with latent variables of rows, learnt by more than one draw of the guide, or by draws that
it merely begins."""
