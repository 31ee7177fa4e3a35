"""Images: size, parts, colours, and their encoding in files. Names are those of TensorFlow 1."""

from flowbook.graph.ops.image.boxes import *
from flowbook.graph.ops.image.colour_spaces import *
from flowbook.graph.ops.image.colours import *
from flowbook.graph.ops.image.detections import *
from flowbook.graph.ops.image.differences import *
from flowbook.graph.ops.image.distorted_boxes import *
from flowbook.graph.ops.image.files import *
from flowbook.graph.ops.image.glimpses import *
from flowbook.graph.ops.image.images import *
from flowbook.graph.ops.image.jpeg_quality import *
from flowbook.graph.ops.image.resizing import *
from flowbook.graph.ops.image.suppression import *
