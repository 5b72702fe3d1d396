"""An Ising spin glass from dimod: how large is log Z, surely, and how much do a few clamps help?

    python examples/spin_glass.py --size 6 --beta 0.8 --out pictures

Couplings of +1 and -1 on a square lattice, and a weak random field.  Mean field bounds log Z from below and TRW from
above; clamping a few spins to both of their values, and summing over these branches, brings the two together.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import clampz as cz


def spin_glass(size, rng):
    """E(s) = sum h_i s_i + sum J_ij s_i s_j on a lattice whose spins are labelled by row and column."""
    import dimod

    spins = [(row, column) for row in range(size) for column in range(size)]
    bonds = [
        ((r, c), (r + dr, c + dc)) for r, c in spins for dr, dc in [(0, 1), (1, 0)] if r + dr < size and c + dc < size
    ]
    fields = dict(zip(spins, rng.normal(0, 0.1, len(spins)), strict=True))
    couplings = dict(zip(bonds, rng.choice([-1.0, 1.0], len(bonds)), strict=True))
    return dimod.BinaryQuadraticModel.from_ising(fields, couplings)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=6, help="spins along a side (default 6)")
    parser.add_argument("--beta", type=float, default=0.8, help="inverse temperature (default 0.8)")
    parser.add_argument("--clamps", type=int, default=6, help="spins to clamp (default 6)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(), help="the folder for the pictures (default: this one)")
    options = parser.parse_args(arguments)
    try:
        bqm = spin_glass(options.size, np.random.default_rng(options.seed))
        import matplotlib  # noqa: F401 (before anything is computed)
    except ModuleNotFoundError as error:
        print(f"this example needs {error.name}: pip install {error.name}", file=sys.stderr)
        return 2

    model = cz.from_dimod(bqm, beta=options.beta)
    print(model)
    lower = cz.clamp(model, "mf", k=options.clamps, select="pseudo-greedy")
    upper = cz.clamp(model, "trw", k=options.clamps, select="pseudo-greedy")
    print("clamps     log Z is between")
    for k, (below, above) in enumerate(zip(lower.steps, upper.steps, strict=True)):
        print(f"{k:6}     {below.lower:.4f} and {above.upper:.4f}, {above.upper - below.lower:.4f} apart")
    exact = cz.exact(model)
    per_spin = -exact.log_z / options.beta / model.num_variables
    print(f"exactly    {exact.log_z:.4f}, so the free energy per spin is {per_spin:.4f}")

    options.out.mkdir(parents=True, exist_ok=True)
    lattice = cz.plot_model(
        model, positions=[(c, -r) for r, c in bqm.variables], marginals=exact, clamped=upper.variables, names=False
    )
    lattice.figure.savefig(options.out / "spin_glass_lattice.png", dpi=150)
    steps = cz.plot_clamped({"TRW": upper, "mean field": lower}, exact)
    steps.figure.savefig(options.out / "spin_glass_clamps.png", dpi=150)
    print(f"wrote {options.out / 'spin_glass_lattice.png'} and {options.out / 'spin_glass_clamps.png'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
