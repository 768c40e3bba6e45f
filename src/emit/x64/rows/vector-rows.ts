/**
 * Vector and mask instructions, one form a line:
 *
 *   name  slots  operand types  encoding  prefix.map.W  opcode[/digit]  memory  [options]
 *
 * Slots: R modrm.reg, V vvvv, M modrm.rm, I imm8, S a register in imm8. Types: v the vector length,
 * h q e a half, quarter, eighth of it, x 128 bits, k a mask, r32 r64, m memory, i8; `v/m` either.
 * Encoding: vex, evex, or both. W: `WIG0` is 0 under VEX and EVEX, `WIG1` 0 and 1, `W0` and `W1` fixed.
 * Memory: bytes of the memory operand as a part of the vector length (full, half, quarter, eighth) or
 * fixed; a digit after the part is the element size of embedded broadcast. Options: `rw` reads its
 * destination, `r` has none, `:256,512` vector lengths, `L0` `L1` fixed VEX.L, `scalar` no length.
 * Source: Intel SDM volume 2. rows.test.ts asks two assemblers about every line.
 */
export const vectorRowText = `
vaddps RVM v,v,v/m both NP.0F.WIG0 58 full4
vaddpd RVM v,v,v/m both 66.0F.WIG1 58 full8
vmulps RVM v,v,v/m both NP.0F.WIG0 59 full4
vmulpd RVM v,v,v/m both 66.0F.WIG1 59 full8
vsubps RVM v,v,v/m both NP.0F.WIG0 5C full4
vsubpd RVM v,v,v/m both 66.0F.WIG1 5C full8
vminps RVM v,v,v/m both NP.0F.WIG0 5D full4
vminpd RVM v,v,v/m both 66.0F.WIG1 5D full8
vdivps RVM v,v,v/m both NP.0F.WIG0 5E full4
vdivpd RVM v,v,v/m both 66.0F.WIG1 5E full8
vmaxps RVM v,v,v/m both NP.0F.WIG0 5F full4
vmaxpd RVM v,v,v/m both 66.0F.WIG1 5F full8
vsqrtps RM v,v/m both NP.0F.WIG0 51 full4
vsqrtpd RM v,v/m both 66.0F.WIG1 51 full8
vandps RVM v,v,v/m both NP.0F.WIG0 54 full4
vandnps RVM v,v,v/m both NP.0F.WIG0 55 full4
vorps RVM v,v,v/m both NP.0F.WIG0 56 full4
vxorps RVM v,v,v/m both NP.0F.WIG0 57 full4
vaddss RVM x,x,x/m both F3.0F.WIG0 58 4 scalar
vaddsd RVM x,x,x/m both F2.0F.WIG1 58 8 scalar
vmulss RVM x,x,x/m both F3.0F.WIG0 59 4 scalar
vmulsd RVM x,x,x/m both F2.0F.WIG1 59 8 scalar
vsubss RVM x,x,x/m both F3.0F.WIG0 5C 4 scalar
vsubsd RVM x,x,x/m both F2.0F.WIG1 5C 8 scalar
vminss RVM x,x,x/m both F3.0F.WIG0 5D 4 scalar
vminsd RVM x,x,x/m both F2.0F.WIG1 5D 8 scalar
vdivss RVM x,x,x/m both F3.0F.WIG0 5E 4 scalar
vdivsd RVM x,x,x/m both F2.0F.WIG1 5E 8 scalar
vmaxss RVM x,x,x/m both F3.0F.WIG0 5F 4 scalar
vmaxsd RVM x,x,x/m both F2.0F.WIG1 5F 8 scalar
vsqrtss RVM x,x,x/m both F3.0F.WIG0 51 4 scalar
vsqrtsd RVM x,x,x/m both F2.0F.WIG1 51 8 scalar
vfmadd132ps RVM v,v,v/m both 66.38.W0 98 full4 rw
vfmadd213ps RVM v,v,v/m both 66.38.W0 A8 full4 rw
vfmadd231ps RVM v,v,v/m both 66.38.W0 B8 full4 rw
vfmadd213pd RVM v,v,v/m both 66.38.W1 A8 full8 rw
vfmadd231pd RVM v,v,v/m both 66.38.W1 B8 full8 rw
vfnmadd213ps RVM v,v,v/m both 66.38.W0 AC full4 rw
vfnmadd231ps RVM v,v,v/m both 66.38.W0 BC full4 rw
vfmadd213ss RVM x,x,x/m both 66.38.W0 A9 4 rw scalar
vfmadd231ss RVM x,x,x/m both 66.38.W0 B9 4 rw scalar
vfmadd213sd RVM x,x,x/m both 66.38.W1 A9 8 rw scalar
vfmadd231sd RVM x,x,x/m both 66.38.W1 B9 8 rw scalar
vcmpps RVMI v,v,v/m,i8 vex NP.0F.WIG0 C2 full :128,256
vcmpps RVMI k,v,v/m,i8 evex NP.0F.W0 C2 full4
vcmppd RVMI v,v,v/m,i8 vex 66.0F.WIG0 C2 full :128,256
vcmppd RVMI k,v,v/m,i8 evex 66.0F.W1 C2 full8
vcmpss RVMI x,x,x/m,i8 vex F3.0F.WIG0 C2 4 scalar
vcmpsd RVMI x,x,x/m,i8 vex F2.0F.WIG0 C2 8 scalar
vblendvps RVMS v,v,v/m,v vex 66.3A.W0 4A full :128,256
vblendvpd RVMS v,v,v/m,v vex 66.3A.W0 4B full :128,256
vblendmps RVM v,v,v/m evex 66.38.W0 65 full4
vblendmpd RVM v,v,v/m evex 66.38.W1 65 full8
vroundps RMI v,v/m,i8 vex 66.3A.WIG0 08 full :128,256
vroundpd RMI v,v/m,i8 vex 66.3A.WIG0 09 full :128,256
vroundss RVMI x,x,x/m,i8 vex 66.3A.WIG0 0A 4 scalar
vroundsd RVMI x,x,x/m,i8 vex 66.3A.WIG0 0B 8 scalar
vrndscaleps RMI v,v/m,i8 evex 66.3A.W0 08 full4
vrndscalepd RMI v,v/m,i8 evex 66.3A.W1 09 full8
vrndscaless RVMI x,x,x/m,i8 evex 66.3A.W0 0A 4 scalar
vrndscalesd RVMI x,x,x/m,i8 evex 66.3A.W1 0B 8 scalar
vbroadcastss RM v,x/m both 66.38.W0 18 4
vbroadcastsd RM v,x/m both 66.38.WIG1 19 8 :256,512
vpbroadcastb RM v,x/m both 66.38.W0 78 1
vpbroadcastw RM v,x/m both 66.38.W0 79 2
vpbroadcastd RM v,x/m both 66.38.W0 58 4
vpbroadcastq RM v,x/m both 66.38.WIG1 59 8
vpbroadcastb RM v,r32 evex 66.38.W0 7A -
vpbroadcastw RM v,r32 evex 66.38.W0 7B -
vpbroadcastd RM v,r32 evex 66.38.W0 7C -
vpbroadcastq RM v,r64 evex 66.38.W1 7C -
vmovups RM v,v/m both NP.0F.WIG0 10 full
vmovups MR m,v both NP.0F.WIG0 11 full
vmovupd RM v,v/m both 66.0F.WIG1 10 full
vmovupd MR m,v both 66.0F.WIG1 11 full
vmovaps RM v,v/m both NP.0F.WIG0 28 full
vmovaps MR m,v both NP.0F.WIG0 29 full
vmovdqu8 RM v,v/m evex F2.0F.W0 6F full
vmovdqu8 MR m,v evex F2.0F.W0 7F full
vmovdqu16 RM v,v/m evex F2.0F.W1 6F full
vmovdqu16 MR m,v evex F2.0F.W1 7F full
vmovntps MR m,v both NP.0F.WIG0 2B full
vmaskmovps RVM v,v,m vex 66.38.W0 2C full :128,256
vmaskmovps MVR m,v,v vex 66.38.W0 2E full :128,256
vmovss RM x,m both F3.0F.WIG0 10 4 scalar
vmovss MR m,x both F3.0F.WIG0 11 4 scalar
vmovsd RM x,m both F2.0F.WIG1 10 8 scalar
vmovsd MR m,x both F2.0F.WIG1 11 8 scalar
vmovd RM x,r32/m both 66.0F.W0 6E 4 scalar
vmovd MR r32/m,x both 66.0F.W0 7E 4 scalar
vmovq RM x,r64 both 66.0F.W1 6E - scalar
vmovq MR r64,x both 66.0F.W1 7E - scalar
vpextrb MRI r32/m,x,i8 both 66.3A.WIG0 14 1 scalar
vpextrd MRI r32/m,x,i8 both 66.3A.W0 16 4 scalar
vpextrq MRI r64/m,x,i8 both 66.3A.W1 16 8 scalar
vpinsrd RVMI x,x,r32/m,i8 both 66.3A.W0 22 4 scalar
vpinsrq RVMI x,x,r64/m,i8 both 66.3A.W1 22 8 scalar
vinsertps RVMI x,x,x/m,i8 both 66.3A.WIG0 21 4 scalar
vshufps RVMI v,v,v/m,i8 both NP.0F.WIG0 C6 full4
vpermilps RMI v,v/m,i8 both 66.3A.W0 04 full4
vpshufd RMI v,v/m,i8 both 66.0F.WIG0 70 full4
vpermps RVM v,v,v/m both 66.38.W0 16 full4 :256,512
vpermd RVM v,v,v/m both 66.38.W0 36 full4 :256,512
vunpcklps RVM v,v,v/m both NP.0F.WIG0 14 full4
vunpckhps RVM v,v,v/m both NP.0F.WIG0 15 full4
vextractf128 MRI x/m,v,i8 vex 66.3A.W0 19 16 :256
vextractf32x4 MRI x/m,v,i8 evex 66.3A.W0 19 16 :256,512
vextractf64x4 MRI h/m,v,i8 evex 66.3A.W1 1B half :512
vinsertf128 RVMI v,v,x/m,i8 vex 66.3A.W0 18 16 :256
vinsertf32x4 RVMI v,v,x/m,i8 evex 66.3A.W0 18 16 :256,512
vinsertf64x4 RVMI v,v,h/m,i8 evex 66.3A.W1 1A half :512
vshuff32x4 RVMI v,v,v/m,i8 evex 66.3A.W0 23 full4 :256,512
vpaddb RVM v,v,v/m both 66.0F.WIG0 FC full
vpackssdw RVM v,v,v/m both 66.0F.WIG0 6B full4
vpackuswb RVM v,v,v/m both 66.0F.WIG0 67 full
vpacksswb RVM v,v,v/m both 66.0F.WIG0 63 full
vpaddw RVM v,v,v/m both 66.0F.WIG0 FD full
vpsubw RVM v,v,v/m both 66.0F.WIG0 F9 full
vpmaddwd RVM v,v,v/m both 66.0F.WIG0 F5 full
vpaddd RVM v,v,v/m both 66.0F.WIG0 FE full4
vpaddq RVM v,v,v/m both 66.0F.WIG1 D4 full8
vpsubd RVM v,v,v/m both 66.0F.WIG0 FA full4
vpsubq RVM v,v,v/m both 66.0F.WIG1 FB full8
vpmulld RVM v,v,v/m both 66.38.WIG0 40 full4
vpmullq RVM v,v,v/m evex 66.38.W1 40 full8
vpminsd RVM v,v,v/m both 66.38.WIG0 39 full4
vpminud RVM v,v,v/m both 66.38.WIG0 3B full4
vpmaxsd RVM v,v,v/m both 66.38.WIG0 3D full4
vpmaxud RVM v,v,v/m both 66.38.WIG0 3F full4
vpabsd RM v,v/m both 66.38.WIG0 1E full4
vpcmpeqd RVM v,v,v/m vex 66.0F.WIG0 76 full :128,256
vpcmpgtd RVM v,v,v/m vex 66.0F.WIG0 66 full :128,256
vpcmpd RVMI k,v,v/m,i8 evex 66.3A.W0 1F full4
vpcmpud RVMI k,v,v/m,i8 evex 66.3A.W0 1E full4
vptestmd RVM k,v,v/m evex 66.38.W0 27 full4
vpslld VMI v,v,i8 both 66.0F.WIG0 72/6 -
vpsrld VMI v,v,i8 both 66.0F.WIG0 72/2 -
vpsrad VMI v,v,i8 both 66.0F.WIG0 72/4 -
vpsllq VMI v,v,i8 both 66.0F.WIG1 73/6 -
vpsrlq VMI v,v,i8 both 66.0F.WIG1 73/2 -
vpsllvd RVM v,v,v/m both 66.38.W0 47 full4
vpsrlvd RVM v,v,v/m both 66.38.W0 45 full4
vpsravd RVM v,v,v/m both 66.38.W0 46 full4
vpternlogd RVMI v,v,v/m,i8 evex 66.3A.W0 25 full4 rw
vcvtdq2ps RM v,v/m both NP.0F.WIG0 5B full4
vcvttps2dq RM v,v/m both F3.0F.WIG0 5B full4
vcvtps2dq RM v,v/m both 66.0F.WIG0 5B full4
vcvtudq2ps RM v,v/m evex F2.0F.W0 7A full4
vcvttps2udq RM v,v/m evex NP.0F.W0 78 full4
vcvtps2udq RM v,v/m evex NP.0F.W0 79 full4
vcvtps2pd RM v,h/m both NP.0F.WIG0 5A half4
vcvtpd2ps RM h,v both 66.0F.WIG1 5A -
vcvtph2ps RM v,h/m both 66.38.W0 13 half
vcvtps2ph MRI h/m,v,i8 both 66.3A.W0 1D half
vpmovsxbw RM v,h/m both 66.38.WIG0 20 half
vpmovzxbw RM v,h/m both 66.38.WIG0 30 half
vpmovsxbd RM v,q/m both 66.38.WIG0 21 quarter
vpmovzxbd RM v,q/m both 66.38.WIG0 31 quarter
vpmovsxwd RM v,h/m both 66.38.WIG0 23 half
vpmovzxwd RM v,h/m both 66.38.WIG0 33 half
vpmovdb MR q/m,v evex F3.38.W0 31 quarter
vpmovdw MR h/m,v evex F3.38.W0 33 half
vpmovsdw MR h/m,v evex F3.38.W0 23 half
vpmovsdb MR q/m,v evex F3.38.W0 21 quarter
vpmovusdb MR q/m,v evex F3.38.W0 11 quarter
vpmovm2d RM v,k evex F3.38.W0 38 -
vpmovm2q RM v,k evex F3.38.W1 38 -
vpmovd2m RM k,v evex F3.38.W0 39 -
vscalefps RVM v,v,v/m evex 66.38.W0 2C full4
vgetexpps RM v,v/m evex 66.38.W0 42 full4
vpdpbusd RVM v,v,v/m evex 66.38.W0 50 full4 rw
vpdpwssd RVM v,v,v/m evex 66.38.W0 52 full4 rw
vdpbf16ps RVM v,v,v/m evex F3.38.W0 52 full4 rw
vcvtneps2bf16 RM h,v evex F3.38.W0 72 -
vmovmskps RM r32,v vex NP.0F.WIG0 50 - :128,256
vcvtsi2ss RVM x,x,r32/m both F3.0F.W0 2A 4 scalar
vcvtsi2ss RVM x,x,r64 both F3.0F.W1 2A - scalar
vcvtsi2sd RVM x,x,r32/m both F2.0F.W0 2A 4 scalar
vcvtsi2sd RVM x,x,r64 both F2.0F.W1 2A - scalar
vcvtusi2ss RVM x,x,r64 evex F3.0F.W1 7B - scalar
vcvtusi2sd RVM x,x,r64 evex F2.0F.W1 7B - scalar
vcvttss2si RM r32,x/m both F3.0F.W0 2C 4 scalar
vcvttss2si RM r64,x/m both F3.0F.W1 2C 4 scalar
vcvttsd2si RM r32,x/m both F2.0F.W0 2C 8 scalar
vcvttsd2si RM r64,x/m both F2.0F.W1 2C 8 scalar
vcvtss2sd RVM x,x,x/m both F3.0F.WIG0 5A 4 scalar
vcvtsd2ss RVM x,x,x/m both F2.0F.WIG1 5A 8 scalar
vucomiss RM x,x/m both NP.0F.WIG0 2E 4 r scalar
vucomisd RM x,x/m both 66.0F.WIG1 2E 8 r scalar
kmovw RM k,r32 vex NP.0F.W0 92 - L0
kmovw RM r32,k vex NP.0F.W0 93 - L0
kmovw RM k,k/m vex NP.0F.W0 90 2 L0
kmovd RM k,r32 vex F2.0F.W0 92 - L0
kmovd RM r32,k vex F2.0F.W0 93 - L0
kmovq RM k,r64 vex F2.0F.W1 92 - L0
kmovq RM r64,k vex F2.0F.W1 93 - L0
kmovq RM k,k/m vex NP.0F.W1 90 8 L0
kmovq MR m,k vex NP.0F.W1 91 8 L0
kandw RVM k,k,k vex NP.0F.W0 41 - L1
korw RVM k,k,k vex NP.0F.W0 45 - L1
kxorw RVM k,k,k vex NP.0F.W0 47 - L1
kxnorw RVM k,k,k vex NP.0F.W0 46 - L1
knotw RM k,k vex NP.0F.W0 44 - L0
kortestw RM k,k vex NP.0F.W0 98 - r L0
vzeroupper - - vex NP.0F.WIG0 77 - L0 r
vldmxcsr M m vex NP.0F.WIG0 AE/2 4 r L0
vstmxcsr M m vex NP.0F.WIG0 AE/3 4 L0
`;
