/** Rows of operands that tensor copies bring are multiples of so many bits (PTX ISA, "Tensor map": strides of 16 bytes). */
export const copiedBits = 128;
