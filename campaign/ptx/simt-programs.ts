/**
 * Program texts without asynchronous proxies: what every architecture from sm_80 on runs. A matrix product
 * on warp-wide instructions fed by cp.async and ldmatrix, a row norm that meets by shuffles and a barrier, and
 * kernels for what is left of the program form: indirect and checked indices, arrays of local memory,
 * meetings of the grid, counters that kernels wait for, 64-bit arithmetic, loops dealt out over an axis.
 */

/** y = x w^T in bf16 with f32 sums: tiles of 64 x 64, steps of 32 along k, three stages of cp.async. */
export function warpGemmProgram(m: number, n: number, k: number): string {
  const steps = k / 32;
  const copies = (stage: string, column: string): string => `for i < 2 unrolled {
          issue cp.async(sx[${stage}, floorDiv(t, 4) + 32*i, 8*mod(t, 4)] box [8], x[64*a + floorDiv(t, 4) + 32*i, ${column} + 8*mod(t, 4)] box [8]) group copy
          issue cp.async(sw[${stage}, floorDiv(t, 4) + 32*i, 8*mod(t, 4)] box [8], w[64*b + floorDiv(t, 4) + 32*i, ${column} + 8*mod(t, 4)] box [8]) group copy
        }`;
  return `program warpgemm for "cuda" {
  buffer x : input memory bf16 [${m}, ${k}] source "x"
  buffer w : weight memory bf16 [${n}, ${k}] source "w"
  buffer y : output memory bf16 [${m}, ${n}] source "y"
  kernel main region "gemm" {
    grid blocks (a < ${m / 64}, b < ${n / 64})
    buffer sx : scratch shared bf16 [3, 64, 32] swizzle 64
    buffer sw : scratch shared bf16 [3, 64, 32] swizzle 64
    buffer acc : scratch register f32 [2, 4, 4]
    buffer fx : scratch register bf16 [2, 8]
    buffer fw : scratch register bf16 [2, 8]
    role all copies 1 threads 128 as t {
      for i < 2 unrolled {
        for j < 4 unrolled {
          store acc[i, j, 0] = f32x4(0)
        }
      }
      for s < 2 unrolled {
        ${copies("s", "32*s")}
        commit copy
      }
      for kb < ${steps} {
        await copy pending 1
        barrier copy
        if ${steps - 3} - kb >= 0 {
          ${copies("mod(kb + 2, 3)", "32*kb + 64")}
        }
        commit copy
        for kk < 2 unrolled {
          for i < 2 unrolled {
            issue ldmatrix.x4.bf16(fx[i, 0] box [8], sx[mod(kb, 3), 32*floorDiv(t, 64) + 16*i, 16*kk] box [16, 16]) sync
            issue ldmatrix.x4.right.bf16(fw[i, 0] box [8], sw[mod(kb, 3), 32*mod(floorDiv(t, 32), 2) + 16*i, 16*kk] box [16, 16]) sync
          }
          for i < 2 unrolled {
            for j < 4 unrolled {
              issue mma.m16n8k16.f32.bf16(acc[i, j, 0] box [4], fx[i, 0] box [8], fw[floorDiv(j, 2), 4*mod(j, 2)] box [4]) sync
            }
          }
        }
      }
      for i < 2 unrolled {
        for j < 4 unrolled {
          for h < 2 unrolled {
            store y[64*a + 32*floorDiv(t, 64) + 16*i + 8*h + floorDiv(mod(t, 32), 4), 64*b + 32*mod(floorDiv(t, 32), 2) + 8*j + 2*mod(t, 4)] = cast.bf16(load.f32x2 acc[i, j, 2*h])
          }
        }
      }
    }
  }
  tasks {
    launch main after previous
  }
}
`;
}

/** y = x / sqrt(mean(x^2) + eps) * g over rows of 1024, a block of 128 threads a row. */
export function rowNormProgram(rows: number): string {
  const meet = [16, 8, 4, 2, 1]
    .map(
      (d) => `issue shuffle.xor${d}.f32(other[0] box [1], sum[0] box [1]) sync
      store sum[0] = add(load.f32 sum[0], load.f32 other[0])`,
    )
    .join("\n      ");
  return `program rownorm for "cuda" {
  buffer x : input memory f32 [${rows}, 1024] source "x"
  buffer g : weight memory f32 [1024] source "g"
  buffer y : output memory f32 [${rows}, 1024] source "y"
  kernel main region "norm" {
    grid blocks (r < ${rows})
    buffer parts : scratch shared f32 [4]
    buffer v : scratch register f32x4 [2]
    buffer sum : scratch register f32 [1]
    buffer other : scratch register f32 [1]
    role all copies 1 threads 128 as t {
      store sum[0] = f32(0)
      for i < 2 unrolled {
        store v[i] = load.f32x4 x[r, 512*i + 4*t]
        let q = load.f32x4 v[i]
        store sum[0] = fma.f32(extract.0(q), extract.0(q), load.f32 sum[0])
        store sum[0] = fma.f32(extract.1(q), extract.1(q), load.f32 sum[0])
        store sum[0] = fma.f32(extract.2(q), extract.2(q), load.f32 sum[0])
        store sum[0] = fma.f32(extract.3(q), extract.3(q), load.f32 sum[0])
      }
      ${meet}
      if mod(t, 32) == 0 {
        store parts[floorDiv(t, 32)] = load.f32 sum[0]
      }
      barrier copy
      let total = add(add(load.f32 parts[0], load.f32 parts[1]), add(load.f32 parts[2], load.f32 parts[3]))
      let scale = reciprocal(sqrt(fma.f32(total, f32(0.0009765625), f32(0.00001))))
      for i < 2 unrolled {
        store y[r, 512*i + 4*t] = mul(mul(load.f32x4 v[i], splat.4(scale)), load.f32x4 g[512*i + 4*t])
      }
    }
  }
  tasks {
    launch main after previous
  }
}
`;
}

/** What other texts leave out. */
export const oddProgram = `program odd for "cuda" {
  parameter M in 1 to 100000
  parameter N in 1 to 100000
  buffer table : input memory f32 [M, 64] source "table"
  buffer at : input memory i64 [N] source "at"
  buffer y : output memory f32 [N, 64] source "y"
  buffer z : output memory i32 [256] source "z"
  buffer flag : scratch memory i32 [264]
  counter ready : memory monotone [2]
  kernel gather region "gather" {
    grid blocks (b < floorDiv(N + 63, 64))
    role all copies 1 threads 64 as t {
      for i < 64 {
        if N - 64*b - i - 1 >= 0 {
          index row < M checked wraps = load.i64 at[64*b + i]
          store y[64*b + i, t] = exp(load.f32 table[row, t])
        }
      }
    }
  }
  kernel meet region "meet" {
    grid blocks (b < 8) resident
    buffer own : scratch local i32 [8]
    role all copies 1 threads 33 as t {
      for i < 8 {
        store own[i] = index.i32(i*t)
      }
      if t == 0 {
        store flag[33*b] = index.i32(b)
      }
      barrier grid
      let other = load.i32 flag[mod(33*b + 33, 264)]
      if 31 - t >= 0 {
        store z[32*b + t] = add(other, load.i32 own[mod(t + b, 8)])
      }
      barrier instance
      if t == 0 {
        signal ready[0] by 1 in instance
        wait ready[0] for 8
      }
    }
  }
  kernel dealt region "dealt" {
    grid threads (c < threads)
    role all copies 1 threads 1 {
      for i < 256 over c {
        store z[i] = mul(load.i32 z[i], i32(3))
      }
    }
  }
  tasks {
    launch gather after previous
    launch meet after previous
    launch dealt after previous
  }
}
`;
