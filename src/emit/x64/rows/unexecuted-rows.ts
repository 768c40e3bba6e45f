/**
 * Instructions that no machine at hand has executed: AVX512-FP16, and the tiles of AMX. They are encoded and printed,
 * and both assemblers judge them as they do the others, but no target has them and link.ts refuses code with one.
 * Format: vector-rows.ts, with maps M5 and M6 of EVEX; type t is a tile register, s memory with an index (the
 * distance of a tile's rows). Source: Intel SDM volume 2; AVX512-FP16 Architecture Specification.
 */
export const unexecutedRowText = `
vaddph RVM v,v,v/m evex NP.M5.W0 58 full2
vmulph RVM v,v,v/m evex NP.M5.W0 59 full2
vsubph RVM v,v,v/m evex NP.M5.W0 5C full2
vminph RVM v,v,v/m evex NP.M5.W0 5D full2
vdivph RVM v,v,v/m evex NP.M5.W0 5E full2
vmaxph RVM v,v,v/m evex NP.M5.W0 5F full2
vsqrtph RM v,v/m evex NP.M5.W0 51 full2
vrcpph RM v,v/m evex 66.M6.W0 4C full2
vrsqrtph RM v,v/m evex 66.M6.W0 4E full2
vgetexpph RM v,v/m evex 66.M6.W0 42 full2
vscalefph RVM v,v,v/m evex 66.M6.W0 2C full2
vrndscaleph RMI v,v/m,i8 evex NP.3A.W0 08 full2
vcmpph RVMI k,v,v/m,i8 evex NP.3A.W0 C2 full2
vfmadd132ph RVM v,v,v/m evex 66.M6.W0 98 full2 rw
vfmadd213ph RVM v,v,v/m evex 66.M6.W0 A8 full2 rw
vfmadd231ph RVM v,v,v/m evex 66.M6.W0 B8 full2 rw
vfnmadd213ph RVM v,v,v/m evex 66.M6.W0 AC full2 rw
vfnmadd231ph RVM v,v,v/m evex 66.M6.W0 BC full2 rw
vcvtph2psx RM v,h/m evex 66.M6.W0 13 half2
vcvtps2phx RM h,v evex 66.M5.W0 1D -
vcvtph2w RM v,v/m evex 66.M5.W0 7D full2
vcvtw2ph RM v,v/m evex F3.M5.W0 7D full2
vaddsh RVM x,x,x/m evex F3.M5.W0 58 2 scalar
vmulsh RVM x,x,x/m evex F3.M5.W0 59 2 scalar
vsubsh RVM x,x,x/m evex F3.M5.W0 5C 2 scalar
vdivsh RVM x,x,x/m evex F3.M5.W0 5E 2 scalar
vfmadd213sh RVM x,x,x/m evex 66.M6.W0 A9 2 rw scalar
vfmadd231sh RVM x,x,x/m evex 66.M6.W0 B9 2 rw scalar
vmovsh RM x,m evex F3.M5.W0 10 2 scalar
vmovsh MR m,x evex F3.M5.W0 11 2 scalar
vmovw RM x,r32/m evex 66.M5.W0 6E 2 scalar
vmovw MR r32/m,x evex 66.M5.W0 7E 2 scalar
ldtilecfg M m vex NP.38.W0 49/0 - r L0
sttilecfg M m vex 66.38.W0 49/0 - r L0
tileloadd RM t,s vex F2.38.W0 4B - L0
tileloaddt1 RM t,s vex 66.38.W0 4B - L0
tilestored MR s,t vex F3.38.W0 4B - r L0
tilezero R t vex F2.38.W0 49 - L0
tilerelease - - vex NP.38.W0 49+C0 - r L0
tdpbssd RMV t,t,t vex F2.38.W0 5E - rw L0
tdpbsud RMV t,t,t vex F3.38.W0 5E - rw L0
tdpbusd RMV t,t,t vex 66.38.W0 5E - rw L0
tdpbuud RMV t,t,t vex NP.38.W0 5E - rw L0
tdpbf16ps RMV t,t,t vex F3.38.W0 5C - rw L0
`;
