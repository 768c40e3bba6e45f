/**
 * Integer and control instructions, one form a line, as in vector-rows.ts:
 *
 *   name[=mnemonic]  slots  operand types  encoding  prefix.map.W  opcode[/digit]  memory  [options]
 *
 * Types: g is r32 or r64 and sets the operand size (`W*`), r8 r16 r32 r64, i8 i32 i64, rel a label.
 * Slot O is a register in the opcode. Where the size of a memory operand does not follow from a
 * register, the name carries it and `=` gives the manual's mnemonic. `opcode+byte`: a fixed second byte.
 */
const alu = (["add", "or", "adc", "sbb", "and", "sub", "xor", "cmp"] as const)
  .map((name, digit) => {
    const code = (low: number): string => (8 * digit + low).toString(16).padStart(2, "0");
    const access = name === "cmp" ? "r" : "rw";
    return [
      `${name} MR g/m,g legacy NP.00.W* ${code(1)} size ${access}`,
      `${name} RM g,m legacy NP.00.W* ${code(3)} size ${access}`,
      `${name} MI g,i8 legacy NP.00.W* 83/${digit} - ${access}`,
      `${name} MI g,i32 legacy NP.00.W* 81/${digit} - ${access}`,
    ].join("\n");
  })
  .join("\n");

/** Condition codes in the order of their numbers. */
export const conditionCodes = [
  ...(["o", "no", "b", "ae", "e", "ne", "be", "a"] as const),
  ...(["s", "ns", "p", "np", "l", "ge", "le", "g"] as const),
] as const;

export type ConditionCode = (typeof conditionCodes)[number];

const conditional = conditionCodes
  .map((cc, i) => {
    const code = (base: number): string => (base + i).toString(16);
    return [
      `set${cc} M r8 legacy NP.0F.W0 ${code(0x90)}/0 -`,
      `cmov${cc} RM g,g/m legacy NP.0F.W* ${code(0x40)} size rw`,
      `j${cc} D rel legacy NP.0F.W0 ${code(0x80)} - r`,
    ].join("\n");
  })
  .join("\n");

export const generalRowText = `
${alu}
${conditional}
test MR g,g legacy NP.00.W* 85 - r
test MI g,i32 legacy NP.00.W* F7/0 - r
mov MR g/m,g legacy NP.00.W* 89 size
mov RM g,m legacy NP.00.W* 8B size
mov MI r64,i32 legacy NP.00.W1 C7/0 -
mov OI r32,i32 legacy NP.00.W0 B8 -
movabs OI r64,i64 legacy NP.00.W1 B8 -
mov MR m,r8 legacy NP.00.W0 88 1
mov MR m,r16 legacy 66.00.W0 89 2
movzx8=movzx RM g,r8/m legacy NP.0F.W* B6 1
movzx16=movzx RM g,r16/m legacy NP.0F.W* B7 2
movsx8=movsx RM g,r8/m legacy NP.0F.W* BE 1
movsx16=movsx RM g,r16/m legacy NP.0F.W* BF 2
movsxd RM r64,r32/m legacy NP.00.W1 63 4
imul RM g,g/m legacy NP.0F.W* AF size rw
imul RMI g,g/m,i8 legacy NP.00.W* 6B size
imul RMI g,g/m,i32 legacy NP.00.W* 69 size
lea RM g,m legacy NP.00.W* 8D size
shl MI g,i8 legacy NP.00.W* C1/4 - rw
shr MI g,i8 legacy NP.00.W* C1/5 - rw
sar MI g,i8 legacy NP.00.W* C1/7 - rw
shlx RMV g,g,g vex 66.38.W* F7 - L0
sarx RMV g,g,g vex F3.38.W* F7 - L0
shrx RMV g,g,g vex F2.38.W* F7 - L0
neg M g legacy NP.00.W* F7/3 - rw
not M g legacy NP.00.W* F7/2 - rw
div M g legacy NP.00.W* F7/6 - r
idiv M g legacy NP.00.W* F7/7 - r
cdq - - legacy NP.00.W0 99 -
cqo - - legacy NP.00.W1 99 -
jmp D rel legacy NP.00.W0 E9 - r
call D rel legacy NP.00.W0 E8 - r
callreg=call M r64 legacy NP.00.W0 FF/2 - r
ret - - legacy NP.00.W0 C3 - r
push O r64 legacy NP.00.W0 50 - r
pop O r64 legacy NP.00.W0 58 -
pause - - legacy F3.00.W0 90 - r
syscall - - legacy NP.0F.W0 05 - r
rdtsc - - legacy NP.0F.W0 31 - r
cpuid - - legacy NP.0F.W0 A2 - r
xgetbv - - legacy NP.0F.W0 01+D0 - r
xchg MR m,g legacy NP.00.W* 87 size rw
lockxadd=lock_xadd MR m,g legacy F0.0F.W* C1 size rw
lockcmpxchg=lock_cmpxchg MR m,g legacy F0.0F.W* B1 size r
prefetcht0 M m legacy NP.0F.W0 18/1 1 r
`;
