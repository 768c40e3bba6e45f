/**
 * The persistent matrix product with producer and consumer roles as a program text: y = x w^T in bf16 with
 * f32 sums, tiles streamed through swizzled shared memory by bulk copies, multiplied by wgmma, written back
 * through a staging buffer by bulk stores. What varies is what a schedule would choose. The campaigns
 * assemble it, break it and run it; bench/device times it.
 */
export interface GemmShape {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

export interface GemmSchedule {
  /** Consumer warpgroups of 64 rows each. */
  readonly consumers: number;
  /** Columns of a tile, a multiple of 64. */
  readonly columns: number;
  readonly stages: number;
  /** Blocks of a cluster along the rows: they share the tile of w by multicast. */
  readonly cluster: number;
  /** Clusters that work through the tiles. */
  readonly clusters: number;
  /** Tile rows that are worked through together, so that w stays in the L2 cache. */
  readonly group: number;
  /** Registers of a thread of the producer and of a consumer. */
  readonly registers: readonly [producer: number, consumer: number];
}

const depth = 64;

export function gemmProgram(shape: GemmShape, schedule: GemmSchedule): string {
  const { m, n, k } = shape;
  const { consumers, columns, stages, cluster, clusters, registers } = schedule;
  const rows = 64 * consumers;
  const share = columns / cluster;
  const tile = placeOfTile(shape, schedule);
  const steps = Math.ceil(k / depth);
  const step = `${steps}*t + kb`;
  // Chunks of all tiles take turns in the two staging buffers.
  const buffer = `mod(${columns / 64}*t + j, 2)`;
  const scope = cluster > 1 ? "cluster" : "instance";
  const axes =
    cluster > 1
      ? `clusters (c < ${clusters}, r < ${cluster}) cluster ${cluster}`
      : `blocks (c < ${clusters})`;
  return `program gemm for "sm_90a" {
  buffer x : input memory bf16 [${m}, ${k}] source "x"
  buffer w : weight memory bf16 [${n}, ${k}] source "w"
  buffer y : output memory bf16 [${m}, ${n}] source "y"
  kernel main region "gemm" {
    grid ${axes}
    buffer sx : scratch shared bf16 [${stages}, ${rows}, ${depth}] swizzle 128
    buffer sw : scratch shared bf16 [${stages}, ${columns}, ${depth}] swizzle 128
    buffer staging : scratch shared bf16 [${consumers}, 2, 64, 64] swizzle 128
    buffer acc : scratch register f32 [${columns / 2}]
    buffer h : scratch register bf16 [8]
    counter full : shared phase [${stages}] arrivals 1
    counter empty : shared phase [${stages}] arrivals ${consumers * cluster}
    role producer copies 1 threads 128 as p {
      issue setmaxnreg.dec.${registers[0]}() sync
      if p == 0 {
        for t < ${tile.trips} {
          for kb < ${steps} {
            wait empty[mod(${step}, ${stages})] for floorDiv(${step}, ${stages}) + 1
            expect full[mod(${step}, ${stages})] bytes ${2 * depth * (rows + columns)}
            issue bulk.load.2d(sx[mod(${step}, ${stages}), 0, 0] box [${rows}, ${depth}], x[${tile.row}, ${depth}*kb] box [${rows}, ${depth}]) signals full[mod(${step}, ${stages})] in instance
            issue bulk.load.2d(sw[mod(${step}, ${stages}), ${shareOf(share, cluster)}, 0] box [${share}, ${depth}], w[${tile.column} + ${shareOf(share, cluster)}, ${depth}*kb] box [${share}, ${depth}]) signals full[mod(${step}, ${stages})] in ${scope}
          }
        }
      }
    }
    role consumer copies ${consumers} as q threads 128 as u {
      issue setmaxnreg.inc.${registers[1]}() sync
      for t < ${tile.trips} {
        for kb < ${steps} {
          wait full[mod(${step}, ${stages})] for floorDiv(${step}, ${stages})
${multiplications(schedule, step)}
          commit mma
          if kb - 1 >= 0 {
            await mma pending 1
            if u == 0 {
              signal empty[mod(${step} + ${stages - 1}, ${stages})] by 1 in ${scope}
            }
          }
        }
        await mma pending 0
        if u == 0 {
          signal empty[mod(${steps}*t + ${steps - 1}, ${stages})] by 1 in ${scope}
        }
        for j < ${columns / 64} unrolled {
          if u == 0 {
            await out pending 1
          }
          barrier copy
          for g < 4 unrolled {
            store h[0] = cast.bf16(load.f32x8 acc[32*j + 8*g])
            issue stmatrix.x4.bf16(staging[q, ${buffer}, 16*floorDiv(u, 32), 16*g] box [16, 16], h[0] box [8]) sync
          }
          fence shared
          barrier copy
          if u == 0 {
            issue bulk.store.2d(y[${tile.row} + 64*q, ${tile.column} + 64*j] box [64, 64], staging[q, ${buffer}, 0, 0] box [64, 64]) group out
            commit out
          }
        }
      }
      if u == 0 {
        await out pending 0
      }
    }
  }
  tasks {
    launch main after previous
  }
}
`;
}

function shareOf(share: number, cluster: number): string {
  return cluster > 1 ? `${share}*r` : "0";
}

/** Index expressions of the tile of trip t: groups of tile rows, column by column inside a group. */
function placeOfTile({ m, n }: GemmShape, schedule: GemmSchedule) {
  const { consumers, columns, cluster, clusters, group } = schedule;
  const rows = 64 * consumers;
  const [tall, wide] = [Math.ceil(m / (rows * cluster)), Math.ceil(n / columns)];
  const tiles = tall * wide;
  const number = `${clusters}*t + c`;
  const span = group * wide;
  const groupNumber = `floorDiv(${number}, ${span})`;
  const height =
    tall % group === 0 ? String(group) : `min(${group}, ${tall} - ${group}*${groupNumber})`;
  const rest = `mod(${number}, ${span})`;
  const row = `${rows * cluster}*(${group}*${groupNumber} + mod(${rest}, ${height}))`;
  return {
    trips:
      tiles % clusters === 0
        ? String(tiles / clusters)
        : `floorDiv(${tiles - 1 + clusters} - c, ${clusters})`,
    row: cluster > 1 ? `${row} + ${rows}*r` : row,
    column: `${columns}*floorDiv(${rest}, ${height})`,
  };
}

/** The four steps of 16 along k of one stage; the first of a tile forgets the old sums. */
function multiplications({ columns, stages }: GemmSchedule, step: string): string {
  const issue = (kk: number, set: string): string =>
    `issue wgmma.${set}m64n${columns}k16.f32.bf16(acc[0] box [${columns / 2}], sx[mod(${step}, ${stages}), 64*q, ${16 * kk}] box [64, 16], sw[mod(${step}, ${stages}), 0, ${16 * kk}] box [${columns}, 16]) group mma`;
  const first = [
    "          if kb == 0 {",
    `            ${issue(0, "set.")}`,
    "          } else {",
    `            ${issue(0, "")}`,
    "          }",
  ];
  return [...first, ...[1, 2, 3].map((kk) => `          ${issue(kk, "")}`)].join("\n");
}
