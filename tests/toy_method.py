"""The method that CONTRIBUTING.md adds in one file; test_common.py runs the contract on it."""

from torch import nn, randn
from torch.nn.functional import mse_loss

from sklearn_pulse.base import BaseSSLTransformer, check_real
from sklearn_pulse.networks import SystemEncoder, pool_steps
from sklearn_pulse.objectives import Objective


class DenoisedMean(Objective):
    """The mean of each channel, told from a noisy window."""

    def __init__(
        self,
        n_channels,
        *,
        embedding_dim,
        encoder_hidden_dim,
        encoder_depth,
        pooling,
        noise,
        seed=0,
    ):
        super().__init__(seed)
        self.encoder = SystemEncoder(
            n_channels, encoder_hidden_dim, embedding_dim, encoder_depth, pooling
        )
        self.head = nn.Linear(self.encoder.embedding_dim, n_channels)
        self.noise = noise

    def forward(self, x, observed=None):
        noise = randn(x.shape, generator=self.generator(x.device), device=x.device)
        embedding = self.encode(x + self.noise * noise, observed)
        return mse_loss(self.head(embedding), pool_steps(x, "mean", observed))


class DenoisedMeanTransformer(BaseSSLTransformer):
    """Embed windows so that the mean of each channel survives noise.

    Parameters
    ----------
    noise : float, default=1.0
        Standard deviation of the noise.
    """

    _objective_class = DenoisedMean
    _objective_names = (
        "embedding_dim",
        "encoder_hidden_dim",
        "encoder_depth",
        "pooling",
        "noise",
    )

    def __init__(
        self,
        *,
        embedding_dim=320,
        encoder_hidden_dim=64,
        encoder_depth=10,
        pooling="max",
        noise=1.0,
        max_epochs=100,
        lr=1e-3,
        weight_decay=1e-5,
        batch_size=128,
        gradient_clip_value=5.0,
        validation_fraction=0.15,
        validation_every=2,
        deterministic_validation=True,
        select="trailing_mean",
        bag_pooling="mean",
        checkpoint_dir=None,
        precision="float32",
        compile=False,
        device="auto",
        num_threads=None,
        input_layout="ntc",
        callbacks=None,
        warm_start=False,
        random_state=None,
        verbose=0,
    ):
        self.embedding_dim = embedding_dim
        self.encoder_hidden_dim = encoder_hidden_dim
        self.encoder_depth = encoder_depth
        self.pooling = pooling
        self.noise = noise
        self.max_epochs = max_epochs
        self.lr = lr
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.gradient_clip_value = gradient_clip_value
        self.validation_fraction = validation_fraction
        self.validation_every = validation_every
        self.deterministic_validation = deterministic_validation
        self.select = select
        self.bag_pooling = bag_pooling
        self.checkpoint_dir = checkpoint_dir
        self.precision = precision
        self.compile = compile
        self.device = device
        self.num_threads = num_threads
        self.input_layout = input_layout
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _check_params(self):
        super()._check_params()
        check_real("noise", self.noise)
