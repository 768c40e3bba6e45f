/**
 * Kernels that schedules are tried on, re-expressed as loops and accesses at small sizes: linear
 * algebra, solvers, statistics, dynamic programming and stencils in the manner of PolyBench, and what
 * networks are made of: attention, convolutions, pooling, normalisation, scans, recurrent cells.
 */

export const kernelTexts: Readonly<Record<string, string>> = {
  gemm: `
    for i in 0..4 {
      for j in 0..4 {
        S: C[i, j] = C[i, j]
        for k in 0..4 {
          T: C[i, j] += A[i, k], B[k, j]
        }
      }
    }`,
  "gemm-ordered": `
    for i in 0..3 {
      for j in 0..4 {
        for k in 0..4 {
          S: C[i, j] ~= A[i, k], B[k, j]
        }
      }
    }`,
  gemver: `
    for i in 0..4 {
      for j in 0..4 {
        S: A[i, j] = A[i, j], u1[i], v1[j], u2[i], v2[j]
      }
    }
    for i in 0..4 {
      for j in 0..4 {
        T: x[i] += A[j, i], y[j]
      }
    }
    for i in 0..4 {
      U: x[i] = x[i], z[i]
    }
    for i in 0..4 {
      for j in 0..4 {
        V: w[i] += A[i, j], x[j]
      }
    }`,
  gesummv: `
    local t
    for i in 0..5 {
      R: t[i] = 
      S: y[i] = 
      for j in 0..5 {
        T: t[i] += A[i, j], x[j]
        U: y[i] += B[i, j], x[j]
      }
      V: y[i] = t[i], y[i]
    }`,
  symm: `
    local t
    for i in 0..4 {
      for j in 0..4 {
        R: t[] = 
        for k in 0..i {
          S: C[k, j] += B[i, j], A[i, k]
          T: t[] += B[k, j], A[i, k]
        }
        U: C[i, j] = C[i, j], B[i, j], A[i, i], t[]
      }
    }`,
  syrk: `
    for i in 0..4 {
      for j in 0..i + 1 {
        S: C[i, j] = C[i, j]
      }
      for k in 0..3 {
        for j in 0..i + 1 {
          T: C[i, j] += A[i, k], A[j, k]
        }
      }
    }`,
  syr2k: `
    for i in 0..4 {
      for j in 0..i + 1 {
        S: C[i, j] = C[i, j]
      }
      for k in 0..3 {
        for j in 0..i + 1 {
          T: C[i, j] ~= A[j, k], B[i, k], B[j, k], A[i, k]
        }
      }
    }`,
  trmm: `
    for i in 0..4 {
      for j in 0..4 {
        for k in i + 1..4 {
          S: B[i, j] += A[k, i], B[k, j]
        }
        T: B[i, j] = B[i, j]
      }
    }`,
  "2mm": `
    local t
    for i in 0..3 {
      for j in 0..3 {
        S: t[i, j] = 
        for k in 0..4 {
          T: t[i, j] += A[i, k], B[k, j]
        }
      }
    }
    for i in 0..3 {
      for j in 0..3 {
        U: D[i, j] = D[i, j]
        for k in 0..3 {
          V: D[i, j] += t[i, k], C[k, j]
        }
      }
    }`,
  "3mm": `
    for i in 0..3 {
      for j in 0..3 {
        for k in 0..3 {
          S: E[i, j] += A[i, k], B[k, j]
        }
      }
    }
    for i in 0..3 {
      for j in 0..3 {
        for k in 0..3 {
          T: F[i, j] += C[i, k], D[k, j]
        }
      }
    }
    for i in 0..3 {
      for j in 0..3 {
        for k in 0..3 {
          U: G[i, j] += E[i, k], F[k, j]
        }
      }
    }`,
  atax: `
    local t
    for i in 0..5 {
      R: y[i] = 
    }
    for i in 0..4 {
      S: t[i] = 
      for j in 0..5 {
        T: t[i] += A[i, j], x[j]
      }
      for j in 0..5 {
        U: y[j] += A[i, j], t[i]
      }
    }`,
  bicg: `
    for i in 0..5 {
      R: s[i] = 
    }
    for i in 0..5 {
      Q: q[i] = 
      for j in 0..5 {
        S: s[j] += r[i], A[i, j]
        T: q[i] += A[i, j], p[j]
      }
    }`,
  doitgen: `
    local t
    for r in 0..3 {
      for q in 0..3 {
        for p in 0..3 {
          S: t[p] = 
          for s in 0..3 {
            T: t[p] += A[r, q, s], C4[s, p]
          }
        }
        for p in 0..3 {
          U: A[r, q, p] = t[p]
        }
      }
    }`,
  mvt: `
    for i in 0..5 {
      for j in 0..5 {
        S: x1[i] += A[i, j], y1[j]
      }
    }
    for i in 0..5 {
      for j in 0..5 {
        T: x2[i] += A[j, i], y2[j]
      }
    }`,
  cholesky: `
    for i in 0..4 {
      for j in 0..i {
        for k in 0..j {
          S: A[i, j] += A[i, k], A[j, k]
        }
        T: A[i, j] = A[i, j], A[j, j]
      }
      for k in 0..i {
        U: A[i, i] += A[i, k]
      }
      V: A[i, i] = A[i, i]
    }`,
  durbin: `
    local z beta alpha sum
    A: y[0] = r[0]
    B: beta[] = 
    C: alpha[] = r[0]
    for k in 1..5 {
      D: beta[] = beta[], alpha[]
      E: sum[] = 
      for i in 0..k {
        F: sum[] += r[k - i - 1], y[i]
      }
      G: alpha[] = r[k], sum[], beta[]
      for i in 0..k {
        H: z[i] = y[i], alpha[], y[k - i - 1]
      }
      for i in 0..k {
        I: y[i] = z[i]
      }
      J: y[k] = alpha[]
    }`,
  gramschmidt: `
    local nrm
    for k in 0..3 {
      R: nrm[] = 
      for i in 0..3 {
        S: nrm[] += A[i, k]
      }
      T: R[k, k] = nrm[]
      for i in 0..3 {
        U: Q[i, k] = A[i, k], R[k, k]
      }
      for j in k + 1..3 {
        V: R[k, j] = 
        for i in 0..3 {
          W: R[k, j] += Q[i, k], A[i, j]
        }
        for i in 0..3 {
          X: A[i, j] = A[i, j], Q[i, k], R[k, j]
        }
      }
    }`,
  lu: `
    for i in 0..4 {
      for j in 0..i {
        for k in 0..j {
          S: A[i, j] += A[i, k], A[k, j]
        }
        T: A[i, j] = A[i, j], A[j, j]
      }
      for j in i..4 {
        for k in 0..i {
          U: A[i, j] += A[i, k], A[k, j]
        }
      }
    }`,
  ludcmp: `
    local w
    for i in 0..4 {
      R: w[] = b[i]
      for j in 0..i {
        S: w[] += A[i, j], y[j]
      }
      T: y[i] = w[]
    }
    for i in 0..4 {
      U: w[] = y[3 - i]
      for j in 4 - i..4 {
        V: w[] += A[3 - i, j], x[j]
      }
      W: x[3 - i] = w[], A[3 - i, 3 - i]
    }`,
  trisolv: `
    for i in 0..6 {
      S: x[i] = b[i]
      for j in 0..i {
        T: x[i] += L[i, j], x[j]
      }
      U: x[i] = x[i], L[i, i]
    }`,
  correlation: `
    for j in 0..4 {
      R: mean[j] = 
      for i in 0..4 {
        S: mean[j] += data[i, j]
      }
      T: mean[j] = mean[j]
    }
    for i in 0..4 {
      for j in 0..4 {
        U: data[i, j] = data[i, j], mean[j]
      }
    }
    for i in 0..3 {
      for j in i + 1..4 {
        V: corr[i, j] = 
        for k in 0..4 {
          W: corr[i, j] += data[k, i], data[k, j]
        }
        X: corr[j, i] = corr[i, j]
      }
    }`,
  covariance: `
    for j in 0..4 {
      for i in 0..4 {
        S: mean[j] += data[i, j]
      }
    }
    for i in 0..4 {
      for j in 0..4 {
        T: data[i, j] = data[i, j], mean[j]
      }
    }
    for i in 0..4 {
      for j in i..4 {
        for k in 0..3 {
          U: cov[i, j] += data[k, i], data[k, j]
        }
        V: cov[j, i] = cov[i, j]
      }
    }`,
  deriche: `
    for i in 0..4 {
      for j in 0..5 {
        S: y1[i, j] = img[i, j], y1[i, j - 1], y1[i, j - 2]
      }
    }
    for i in 0..4 {
      for j in 0..5 {
        T: y2[i, 4 - j] = y2[i, 5 - j], y2[i, 6 - j], img[i, 4 - j]
      }
    }
    for i in 0..4 {
      for j in 0..5 {
        U: out[i, j] = y1[i, j], y2[i, j]
      }
    }`,
  "floyd-warshall": `
    for k in 0..4 {
      for i in 0..4 {
        for j in 0..4 {
          S: path[i, j] = path[i, j], path[i, k], path[k, j]
        }
      }
    }`,
  nussinov: `
    for i in 0..5 {
      for j in 5 - i..5 {
        S: t[4 - i, j] = t[4 - i, j], t[4 - i, j - 1], t[5 - i, j], t[5 - i, j - 1]
        for k in 5 - i..j {
          T: t[4 - i, j] += t[4 - i, k], t[k + 1, j]
        }
      }
    }`,
  adi: `
    for t in 0..2 {
      for i in 1..4 {
        for j in 1..4 {
          S: p[i, j] = p[i, j - 1], u[j, i - 1], u[j, i], u[j, i + 1]
        }
        for j in 1..4 {
          T: v[4 - j, i] = p[i, 4 - j], v[5 - j, i]
        }
      }
      for i in 1..4 {
        for j in 1..4 {
          U: p[i, j] = p[i, j - 1], v[i - 1, j], v[i, j], v[i + 1, j]
        }
        for j in 1..4 {
          V: u[i, 4 - j] = p[i, 4 - j], u[i, 5 - j]
        }
      }
    }`,
  "fdtd-2d": `
    for t in 0..3 {
      for j in 0..3 {
        R: ey[0, j] = f[t]
      }
      for i in 1..3 {
        for j in 0..3 {
          S: ey[i, j] = ey[i, j], hz[i, j], hz[i - 1, j]
        }
      }
      for i in 0..3 {
        for j in 1..3 {
          T: ex[i, j] = ex[i, j], hz[i, j], hz[i, j - 1]
        }
      }
      for i in 0..2 {
        for j in 0..2 {
          U: hz[i, j] = hz[i, j], ex[i, j + 1], ex[i, j], ey[i + 1, j], ey[i, j]
        }
      }
    }`,
  "heat-3d": `
    for t in 0..2 {
      for i in 1..4 {
        for j in 1..4 {
          for k in 1..4 {
            S: B[i, j, k] = A[i, j, k], A[i - 1, j, k], A[i + 1, j, k], A[i, j - 1, k], A[i, j, k + 1]
          }
        }
      }
      for i in 1..4 {
        for j in 1..4 {
          for k in 1..4 {
            T: A[i, j, k] = B[i, j, k], B[i + 1, j, k], B[i, j + 1, k], B[i, j, k - 1]
          }
        }
      }
    }`,
  "jacobi-1d": `
    for t in 0..4 {
      for i in 1..7 {
        S: B[i] = A[i - 1], A[i], A[i + 1]
      }
      for i in 1..7 {
        T: A[i] = B[i - 1], B[i], B[i + 1]
      }
    }`,
  "jacobi-2d": `
    for t in 0..3 {
      for i in 1..4 {
        for j in 1..4 {
          S: B[i, j] = A[i, j], A[i, j - 1], A[i, j + 1], A[i + 1, j], A[i - 1, j]
        }
      }
      for i in 1..4 {
        for j in 1..4 {
          T: A[i, j] = B[i, j], B[i, j - 1], B[i + 1, j]
        }
      }
    }`,
  "seidel-2d": `
    for t in 0..3 {
      for i in 1..5 {
        for j in 1..5 {
          S: A[i, j] = A[i - 1, j - 1], A[i - 1, j], A[i - 1, j + 1], A[i, j - 1], A[i, j], A[i, j + 1], A[i + 1, j]
        }
      }
    }`,
  "stencil-1-minus-1": `
    for i in 0..6 {
      for j in 0..6 {
        S: A[i, j] = A[i - 1, j + 1]
      }
    }`,
  "time-stencil": `
    for t in 0..5 {
      for i in 1..8 {
        S: A[t + 1, i] = A[t, i - 1], A[t, i], A[t, i + 1]
      }
    }`,
  attention: `
    local s m e d
    for q in 0..3 {
      for k in 0..3 {
        A: s[q, k] = 
        for h in 0..2 {
          B: s[q, k] += Q[q, h], K[k, h]
        }
      }
      C: m[q] = 
      for k in 0..3 {
        D: m[q] += s[q, k]
      }
      E: d[q] = 
      for k in 0..3 {
        F: e[q, k] = s[q, k], m[q]
        G: d[q] += e[q, k]
      }
      for v in 0..2 {
        H: O[q, v] = 
        for k in 0..3 {
          I: O[q, v] += e[q, k], V[k, v]
        }
        J: O[q, v] = O[q, v], d[q]
      }
    }`,
  convolution: `
    local c
    for o in 0..2 {
      for y in 0..3 {
        for x in 0..3 {
          S: c[o, y, x] = bias[o]
          for u in 0..2 {
            for v in 0..2 {
              T: c[o, y, x] += in[y + u, x + v], w[o, u, v]
            }
          }
        }
      }
    }
    for o in 0..2 {
      for y in 0..3 {
        for x in 0..3 {
          U: out[o, y, x] = c[o, y, x]
        }
      }
    }`,
  depthwise: `
    for c in 0..3 {
      for x in 0..4 {
        S: t[c, x] = 
        for u in 0..3 {
          T: t[c, x] += in[c, 2x + u], w[c, u]
        }
      }
    }
    for o in 0..2 {
      for x in 0..4 {
        for c in 0..3 {
          U: out[o, x] += t[c, x], p[o, c]
        }
      }
    }`,
  pooling: `
    local c
    for y in 0..6 {
      for x in 0..6 {
        S: c[y, x] = in[y, x]
      }
    }
    for y in 0..3 {
      for x in 0..3 {
        for u in 0..2 {
          for v in 0..2 {
            T: out[y, x] += c[2y + u, 2x + v]
          }
        }
      }
    }`,
  "scan-1d": `
    for b in 0..3 {
      for i in 1..9 {
        S: y[b, i] = y[b, i - 1]%, x[b, i]
      }
    }
    for b in 0..3 {
      for i in 0..9 {
        T: z[b, i] = y[b, i]
      }
    }`,
  "scan-2d": `
    for i in 1..5 {
      for j in 1..5 {
        S: r[i, j] = r[i, j - 1]%, x[i, j]
      }
    }
    for i in 1..5 {
      for j in 1..5 {
        T: y[i, j] = y[i - 1, j]%, r[i, j]
      }
    }`,
  "linear-attention": `
    for t in 1..4 {
      for i in 0..3 {
        for j in 0..3 {
          S: s[t, i, j] = s[t - 1, i, j]%, k[t, i], v[t, j]
        }
      }
      for j in 0..3 {
        T: o[t, j] = 
        for i in 0..3 {
          U: o[t, j] += q[t, i], s[t, i, j]
        }
      }
    }`,
  lstm: `
    local g
    for t in 1..4 {
      for u in 0..4 {
        S: g[t, u] = b[u]
        for i in 0..2 {
          T: g[t, u] += W[u, i], x[t, i]
        }
        for i in 0..2 {
          U: g[t, u] += R[u, i], h[t - 1, i]
        }
      }
      for i in 0..2 {
        V: c[t, i] = c[t - 1, i], g[t, i], g[t, i + 2]
        W: h[t, i] = c[t, i], g[t, i]
      }
    }`,
  gru: `
    local z
    for t in 1..5 {
      for i in 0..3 {
        S: z[i] = x[t, i], h[i]
      }
      for i in 0..3 {
        T: h[i] = h[i], z[i], z[2 - i]
      }
      for i in 0..3 {
        U: y[t, i] = h[i]
      }
    }`,
  softmax: `
    local m e s
    for i in 0..4 {
      S: m[] = 
      for j in 0..4 {
        T: m[] += x[i, j]
      }
      R: s[] = 
      for j in 0..4 {
        U: e[j] = x[i, j], m[]
        V: s[] += e[j]
      }
      for j in 0..4 {
        W: y[i, j] = e[j], s[]
      }
    }`,
  "layer-norm": `
    for i in 0..4 {
      for j in 0..4 {
        S: mu[i] += x[i, j]
      }
      for j in 0..4 {
        T: va[i] += x[i, j], mu[i]
      }
      for j in 0..4 {
        U: y[i, j] = x[i, j], mu[i], va[i]
      }
    }`,
  gather: `
    for i in 0..5 {
      for j in 0..3 {
        S: y[i, j] = ids[i], table[0:3, j]
      }
    }
    for i in 0..3 {
      for j in 0..3 {
        T: table[i, j] = y[i, j]
      }
    }`,
  scatter: `
    for i in 0..5 {
      for j in 0..3 {
        S: y[0:4, j] += x[i, j]
      }
    }
    for i in 0..4 {
      for j in 0..3 {
        T: z[i, j] = y[i, j]
      }
    }`,
};
